from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import vramscope
from vramscope.notebook.extension import ExtensibleShell


class FakeShell:
    """Keeps the magics that it was given."""

    def __init__(self) -> None:
        self.lines: dict[str, Any] = {"time": "IPython's own"}
        self.magics_manager = SimpleNamespace(magics={"line": self.lines})
        self.user_ns: dict[str, Any] = {}

    def register_magic_function(
        self, func: Callable[[str], None], magic_kind: str, magic_name: str
    ) -> None:
        assert magic_kind == "line"
        self.lines[magic_name] = func


def test_the_magic_comes_and_goes() -> None:
    shell = FakeShell()
    vramscope.load_ipython_extension(cast(ExtensibleShell, shell))
    assert set(shell.lines) == {"time", "vramscope"}
    # What `%vramscope?` shows.
    assert "--help lists the options" in str(shell.lines["vramscope"].__doc__)
    for _ in range(2):
        vramscope.unload_ipython_extension(cast(ExtensibleShell, shell))
        assert set(shell.lines) == {"time"}
