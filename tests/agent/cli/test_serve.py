from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess
from vramscope.cli.problem import Problem
from vramscope.cli.serve import become_server, check_server_extra
from vramscope.local import local_server


class ServedByTheAgent(ServerProcess):
    """The same server, started by ``vramscope serve``."""

    def command(self) -> list[str]:
        _, _, _, *options = super().command()
        return [sys.executable, "-m", "vramscope", "serve", *options]


def test_the_command_becomes_the_server_that_it_was_told_to_be(tmp_path: Path) -> None:
    with ServedByTheAgent(tmp_path, token="told") as server:
        assert server.get("/api/v1/session")["scopes"]
        # No process in between: who ends this one has ended the server.
        command = Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")
        assert b"vramscope_server" in command
        assert server.terminate() in (0, -signal.SIGTERM)


def test_what_was_printed_before_is_not_lost() -> None:
    code = (
        "import sys; from vramscope.cli.serve import become_server\n"
        "print('before'); print('before', file=sys.stderr)\n"
        "become_server(['--version'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("before\nvramscope ")
    assert done.stderr == "before\n"


def test_without_the_extra_it_stays_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail(f"became {command}"))
    monkeypatch.setattr(local_server, "_EXTRA_MODULES", ("json", "no_such_module"))
    with pytest.raises(Problem, match=r"needs no_such_module.*pip install 'vramscope\[server\]'"):
        check_server_extra()
    with pytest.raises(Problem):
        become_server(["serve"])
