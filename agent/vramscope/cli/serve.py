"""``vramscope serve``: become the server, if it is installed here."""

from __future__ import annotations

import os
import sys

from vramscope.cli.problem import Problem
from vramscope.local.local_server import INSTALL_HINT, missing_server_extra, server_command


def execute(arguments: list[str]) -> int:
    """Replace this process by the server, which reads the arguments itself."""
    become_server(["serve", *arguments])
    return 0  # pragma: no cover - the process is the server by now


def become_server(arguments: list[str]) -> None:
    """Run the server's own command line in this process's place.

    Raises:
        Problem: the server extra is not installed.
    """
    check_server_extra()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, server_command(*arguments))


def check_server_extra() -> None:
    """Say what to install when the server cannot run here.

    Raises:
        Problem: the server extra is not installed.
    """
    missing = missing_server_extra()
    if missing is not None:
        raise Problem(f"the server needs {missing}, which is not here; {INSTALL_HINT}")
