from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from vramscope_server.__main__ import main

COMMAND = [sys.executable, "-m", "vramscope_server"]


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    clean = {name: value for name, value in os.environ.items() if "VRAMSCOPE" not in name}
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env=clean | environ,
        check=False,
    )


def main_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command line that is wrong says; in this process, because that is quicker."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    output, errors = capsys.readouterr()
    assert (ended.value.code, output) == (2, "")
    assert errors.startswith("vramscope: ")
    assert errors.count("\n") == 1, errors
    return errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prot", "1"], "unrecognized arguments: --prot 1"),
        (["--port", "many"], "argument --port: invalid int value: 'many'"),
        (["--port", "70000"], "--port: expected a port from 0 to 65535, got 70000"),
        (["--host", "0.0.0.0"], "refusing to listen on 0.0.0.0 without a token"),
        (["--lost-after-s", "0"], "--lost-after-s: expected more than 0"),
        (["dance"], "invalid choice: 'dance'"),
        (["token"], "required: create|list|revoke"),
        (["token", "create"], "required: --scope"),
        (["--port", "0", "--database", "nonsense"], "expected a database URL such as"),
        (["--port", "0", "--database", "sqlite:////proc/none/x.db"], "/proc/none"),
    ],
)
def test_a_wrong_command_line_is_answered_in_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.delenv("VRAMSCOPE_TOKEN", raising=False)
    assert message in main_error(capsys, *arguments)


def test_an_occupied_port_ends_a_real_process_with_two(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port, "--database", f"sqlite:///{tmp_path}/x.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"vramscope: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
    )


def test_help_and_version() -> None:
    assert "--idle-exit-s" in run("serve", "--help").stdout
    assert run("--version").stdout.startswith("vramscope 0")
    assert "serve|token" in run("--help").stdout


def test_the_environment_stands_in_for_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAMSCOPE_TOKEN", "from-environment")
    monkeypatch.setenv("VRAMSCOPE_DATABASE", "nonsense-of-the-environment")
    # The token is there, so that the refused bind is not what ends it: the database is.
    assert "nonsense-of-the-environment" in main_error(capsys, "--host", "0.0.0.0", "--port", "0")
