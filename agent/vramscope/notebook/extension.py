"""What ``%load_ext vramscope`` and ``%unload_ext vramscope`` do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol

from vramscope.notebook.magic import Magic, Shell

MAGIC_NAME: Final = "vramscope"


class MagicsManager(Protocol):
    """Where a shell keeps its magics."""

    @property
    def magics(self) -> Mapping[str, MutableMapping[str, Any]]:
        """By kind, then by name."""
        ...


class ExtensibleShell(Shell, Protocol):
    """What is used of IPython's shell to add a magic to it, and to take it away."""

    @property
    def magics_manager(self) -> MagicsManager:
        """Its magics."""
        ...

    def register_magic_function(
        self, func: Callable[[str], None], magic_kind: str, magic_name: str
    ) -> None:
        """Make ``func`` known under a name."""
        ...


def load(shell: ExtensibleShell) -> None:
    """Make ``%vramscope`` known. Loading again replaces it; nothing is attached yet."""
    magic = Magic(shell)

    def vramscope(line: str) -> None:
        """Attach this kernel and show the live page of its run; --help lists the options."""
        magic.run(line)

    shell.register_magic_function(vramscope, "line", MAGIC_NAME)


def unload(shell: ExtensibleShell) -> None:
    """Forget ``%vramscope``. A kernel that is attached stays so."""
    shell.magics_manager.magics["line"].pop(MAGIC_NAME, None)
