"""What a process runs is found out without stopping it, and what it is not is said."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attach_targets import attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import NotInjectable, find_interpreter
from vramscope.injection.process_status import read_process_status


@contextlib.contextmanager
def running(*command: str | Path) -> Iterator[int]:
    """A program, by its pid; it does not outlive the block."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        # Between fork and exec it is still this very Python.
        own = read_process_status(os.getpid()).executable
        wait_until(lambda: read_process_status(process.pid).executable != own)
        try:
            yield process.pid
        finally:
            process.kill()


def refusal(pid: int) -> tuple[str, str]:
    with pytest.raises(NotInjectable) as caught:
        find_interpreter(pid)
    return caught.value.kind, caught.value.reason


@pytest.mark.parametrize("python", offered_interpreters(), ids=str)
def test_version_and_way(python: OfferedInterpreter, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        found = find_interpreter(target.pid)
        assert (found.pid, found.version) == (target.pid, python.version)
        assert found.how == ("remote_exec" if python.version >= (3, 14) else "pending_call")
        assert found.machine == os.uname().machine
        assert ("libpython" in found.library) is python.shared
        target.end_unharmed(0)


def test_a_program_that_is_not_python() -> None:
    with running("sleep", "1000") as pid:
        assert refusal(pid) == ("not_python", "it is not a Python process")


def test_a_program_that_only_calls_itself_python(tmp_path: Path) -> None:
    program = tmp_path / "python3.12"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with running(program, "1000") as pid:
        kind, reason = refusal(pid)
        assert (kind, "python3.12 exports no Py_AddPendingCall" in reason) == ("symbols", True)


def test_an_old_python() -> None:
    old = list(Path.home().glob(".pyenv/versions/3.[6-9].*/bin/python3"))
    if not old:
        pytest.skip("no Python older than 3.10 here")
    with running(old[0], "-c", "input()") as pid:
        # Until its libraries are there it shows no Python at all.
        wait_until(lambda: refusal(pid)[0] == "version")
        kind, reason = refusal(pid)
        assert (kind, "3.10 is the oldest" in reason) == ("version", True)


def test_a_file_that_is_gone_does_not_matter(tmp_path: Path) -> None:
    static = [one for one in offered_interpreters() if not one.shared and one.version < (3, 14)]
    if not static:
        pytest.skip("no Python that is one file here")
    program = tmp_path / "python"
    shutil.copy(static[0].executable, program)
    with attach_target(tmp_path, "working", "python", program) as target:
        program.unlink()
        assert find_interpreter(target.pid).version == static[0].version
        target.end_unharmed(0)


def test_gone_ended_and_of_the_kernel() -> None:
    assert refusal(2**22 + 1)[0] == "gone"
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert refusal(process.pid) == ("gone", "its main thread has ended")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_of_somebody_else(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        child = os.fork()
        if child == 0:
            os.setresuid(65534, 65534, 65534)
            try:
                find_interpreter(target.pid)
            except NotInjectable as error:
                os._exit(0 if error.kind == "permission" else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        os.kill(target.pid, signal.SIGKILL)
