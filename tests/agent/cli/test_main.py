from __future__ import annotations

import subprocess
import sys

import pytest

from vramscope import __version__
from vramscope.cli import main


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vramscope {__version__}\n"
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("demo", "serve", "run", "runs", "command", "replay", "token"):
        assert f"\n  {name} " in out
    assert main([]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "no command 'fly'; expected one of: demo, serve, run, "),
        (["run"], "expected a script or -m MODULE to run"),
        (["run", "--url", "http://127.0.0.1:1"], "expected a script or -m MODULE to run"),
        (["run", "-m"], "expected the name of a module behind -m"),
        (["run", "no_such.py"], "no script at 'no_such.py'"),
        (["run", "/"], "'/' is a folder without a __main__.py"),
        (["run", "--url", "nonsense", "x.py"], "url: expected a server URL like"),
        (["run", "--rate-hz", "fast", "x.py"], "rate_hz: expected a rate in Hz"),
        (["run", "--no-such-option=1", "x.py"], "unrecognized arguments: --no-such-option=1"),
        (["run", "--capacity=lots", "x.py"], "capacity: expected a size such as 8GiB"),
        (["command", "run"], "the following arguments are required: NAME"),
        (["command", "r", "c", "--url", "box"], "url: expected a server URL like"),
        (["runs", "--url", "http://127.0.0.1:1"], "no server answers at http://127.0.0.1:1"),
        (["demo", "--port", "x"], "argument --port: invalid int value: 'x'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vramscope: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_python_minus_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vramscope", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"vramscope {__version__}\n")


@pytest.mark.parametrize("name", ["serve", "token", "demo"])
def test_without_the_server_extra_it_says_what_to_install(name: str) -> None:
    code = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'fastapi' else real(n, *a)\n"
        "from vramscope.cli import main\n"
        f"sys.exit(main([{name!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "vramscope: the server needs fastapi, which is not here; pip install 'vramscope[server]'\n"
    )
