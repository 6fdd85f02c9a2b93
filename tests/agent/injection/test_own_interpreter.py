"""The very Python of a process runs again, where that process is and as whom it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.injection.own_interpreter import run_own_interpreter

WAIT = "import sys\nprint('ready', flush=True)\nsys.stdin.read()"
ASK = "import json, os, sys; print(json.dumps([sys.executable, os.getcwd(), dict(os.environ)]))"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", WAIT],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
        started.communicate("")


def test_program_folder_and_environment(process: subprocess.Popen[str], tmp_path: Path) -> None:
    done = run_own_interpreter(process.pid, ["-c", ASK], environment={"A": "b=\u00e9\n"})
    assert (done.returncode, done.stderr) == (0, "")
    executable, folder, environment = json.loads(done.stdout)
    assert (executable, folder) == (sys.executable, str(tmp_path))
    # What it runs to get there compiles nothing that would stay in the place of the process.
    assert "-B" in done.args
    assert environment["A"] == "b=\u00e9\n"
    # Python adds its own LC_CTYPE in the C locale.
    assert set(environment) <= {"A", "LC_CTYPE"}


def test_exit_code_and_errors_are_its_own(process: subprocess.Popen[str]) -> None:
    code = "import sys; sys.exit('no ' + repr(sys.stdin.read()))"
    done = run_own_interpreter(process.pid, ["-c", code], environment={})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no ''\n")


def test_argv0_decides_which_environment_it_finds(
    process: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(sys._base_executable)}\n")  # type: ignore[attr-defined]
    done = run_own_interpreter(
        process.pid,
        ["-c", "import sys; print(sys.prefix)"],
        environment={},
        argv0=str(tmp_path / "bin" / "python"),
    )
    assert done.stdout.strip() == str(tmp_path)


def test_what_takes_too_long_is_killed(process: subprocess.Popen[str]) -> None:
    start_s = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_own_interpreter(
            process.pid, ["-c", "import time; time.sleep(60)"], environment={}, timeout_s=0.5
        )
    assert time.monotonic() - start_s < 30


def test_a_process_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        run_own_interpreter(2**22 + 1, ["-c", ""], environment={})


def test_what_cannot_be_opened_is_named(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    with pytest.raises(OSError, match=r"."):
        run_own_interpreter(process.pid, ["-c", ""], environment={}, argv0="python")
