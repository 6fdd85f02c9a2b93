"""Finds a command by its name, as a shell would, if it is a Python program of this environment."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.metadata import entry_points
from typing import Final

_READ_BYTES: Final = 256
_SHEBANG: Final = re.compile(rb"#!\s*(\S+)(?:\s+(\S+))?")


class ForeignScript(Exception):
    """The command is there, but another interpreter runs it; the message says which."""


def find_script(name: str) -> str | None:
    """Path of a Python script of that name, next to the interpreter or on ``PATH``.

    Raises:
        ForeignScript: it is a program of another Python, or none of Python at all.
    """
    if not name or os.path.dirname(name):
        return None
    folders = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        return None
    with open(path, "rb") as file:
        first_line = file.read(_READ_BYTES).partition(b"\n")[0]
    shebang = _SHEBANG.match(first_line)
    if shebang is None:
        raise ForeignScript(f"{path} is not a Python script")
    words = [os.fsdecode(word) for word in shebang.groups() if word]
    if os.path.basename(words[0]) == "env":
        interpreter = shutil.which(words[-1]) or words[-1]
    else:
        interpreter = words[0]
    if not os.path.basename(interpreter).startswith("python"):
        raise ForeignScript(f"{path} is not a Python script")
    if _environment(interpreter) != _environment(sys.executable):
        raise ForeignScript(
            f"{path} runs under {interpreter}, and this is {sys.executable}: "
            "install vramscope there and use that one's vramscope"
        )
    return path


def find_entry_point(name: str) -> str | None:
    """Source of a program that calls the console script of that name of an installed package.

    Where the script itself cannot be run by Python: pip starts it through ``sh`` where the path
    of the interpreter is long.
    """
    for found in entry_points(group="console_scripts", name=name):
        if re.fullmatch(r"[\w.]+", found.module) and re.fullmatch(r"[\w.]+", found.attr):
            function = found.attr.partition(".")[0]
            return (
                f"import sys\nfrom {found.module} import {function}\n"
                f"if __name__ == '__main__':\n    sys.exit({found.attr}())\n"
            )
    return None


def _environment(interpreter: str) -> str:
    """Folder of the interpreter: ``python`` and ``python3`` of one environment are the same."""
    return os.path.realpath(os.path.dirname(interpreter))
