"""Processes as /proc describes them: real ones of this machine."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.made_processes import made_process
from vramscope.processes.process import (
    NoSuchProcess,
    is_same_life,
    read_process,
    started_ns,
    user_name,
)

CLONE_NEWPID = 0x20000000
WAITS = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that waits for its input to end, with a secret on its command line."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, "--token", "s3cr3t"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.communicate()


def test_a_child_is_described(waiting: subprocess.Popen[bytes]) -> None:
    process = read_process(waiting.pid)
    assert process.pid == process.ns_pid == waiting.pid
    assert process.ppid == os.getpid()
    assert process.uids.effective == os.geteuid()
    assert process.user == user_name(os.geteuid())
    assert process.exe == os.path.realpath(sys.executable)
    assert not process.exe_deleted
    assert process.tracer_pid == 0
    assert process.same_root is True
    assert process.same_pid_namespace is True
    assert not process.container
    assert process.argv[1:3] == ("-c", WAITS)
    assert "s3cr3t" not in process.command


def test_the_start_is_when_it_was_started(waiting: subprocess.Popen[bytes]) -> None:
    process = read_process(waiting.pid)
    assert started_ns(read_process(os.getpid()).start_ticks) <= process.started_ns
    assert process.started_ns <= time.time_ns() + 1_000_000_000


def test_a_life_ends_with_the_process(waiting: subprocess.Popen[bytes]) -> None:
    process = read_process(waiting.pid)
    assert is_same_life(process)
    assert not is_same_life(replace(process, start_ticks=process.start_ticks - 1))
    waiting.communicate()
    assert not is_same_life(process)


def test_a_process_that_has_ended_is_named_in_the_error() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(NoSuchProcess, match=f"no process {ended.pid} "):
        read_process(ended.pid)


def test_a_process_that_proc_hides_is_told_from_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """/proc mounted with hidepid shows a user nothing of the others."""

    def refuse(pid: int, signal: int) -> None:
        assert signal == 0
        raise PermissionError

    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(NoSuchProcess, match="hidden from this user"):
        read_process(ended.pid)


def test_a_zombie_can_be_described() -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    process = read_process(ended.pid)
    assert process.state == "Z"
    assert process.command == "true"
    assert not is_same_life(process)
    ended.wait()


def test_a_thread_is_no_process() -> None:
    started, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    try:
        with pytest.raises(NoSuchProcess, match=f"is a thread of process {os.getpid()}"):
            read_process(thread.native_id or 0)
    finally:
        may_end.set()
        thread.join()


def test_an_interpreter_that_was_replaced_is_said_to_be_deleted(tmp_path: Path) -> None:
    program = tmp_path / "python3"
    program.write_bytes(Path("/bin/cat").read_bytes())
    program.chmod(0o700)
    with subprocess.Popen([program], stdin=subprocess.PIPE) as running:
        while os.readlink(f"/proc/{running.pid}/exe") != str(program):
            time.sleep(0.001)
        program.unlink()
        process = read_process(running.pid)
        assert process.exe == str(program)
        assert process.exe_deleted
        running.communicate()


def test_the_init_process_of_a_pid_namespace_has_two_numbers() -> None:
    """As in a container: one number here, 1 inside."""
    library = ctypes.CDLL(None, use_errno=True)

    def enter() -> None:
        # What this child starts next, the shell's child, is number 1 of the new namespace.
        if library.unshare(CLONE_NEWPID) != 0:
            os._exit(77)

    with subprocess.Popen(
        ["sh", "-c", "sleep 100 & echo up; wait"],
        stdout=subprocess.PIPE,
        preexec_fn=enter,
    ) as outer:
        assert outer.stdout is not None
        outer.stdout.readline()
        if outer.poll() == 77:
            pytest.skip("may not make a pid namespace")
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        try:
            process = read_process(int(children[0]))
        finally:
            os.kill(int(children[0]), signal.SIGKILL)
            outer.communicate()
    assert process.ns_pid == 1
    assert process.pid == int(children[0])
    assert process.same_pid_namespace is False
    assert process.container


def test_a_second_number_shows_a_container_where_nothing_else_may_be_read() -> None:
    unreadable = made_process(same_pid_namespace=None, same_root=None)
    assert not unreadable.container
    assert replace(unreadable, ns_pid=1).container


def test_a_user_without_a_name_is_a_number() -> None:
    assert user_name(4_000_000_000) == "4000000000"
    assert user_name(0) == "root"
