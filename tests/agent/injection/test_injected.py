"""Lines put into running programs run there, once each, and nothing else changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from tests.support.job_process import child_environment
from vramscope.injection import InjectionError, Interpreter, inject
from vramscope.injection.process_status import read_process_status
from vramscope.injection.stages import STAGES

BY_PENDING_CALL = [one for one in offered_interpreters() if one.version < (3, 14)]
# What the kernel does is the same under all of them.
OLDEST_AND_NEWEST = sorted({*BY_PENDING_CALL[:1], *BY_PENDING_CALL[-1:]}, key=str)
ROUNDS = 60

CLIENT = f"""
import sys
from vramscope.injection import find_interpreter, inject, main_thread
main_thread._TRACED_FOR_S = 60  # on a busy machine the other one may be held up while it traces
print("ready", flush=True)
sys.stdin.read()
interpreter = find_interpreter(int(sys.argv[1]))
for _ in range({ROUNDS}):
    inject(interpreter, {COUNT!r})
"""

DEBUGGER = """
import sys
from vramscope.injection import ptrace
ptrace.seize(int(sys.argv[1]))
print("tracing", flush=True)
sys.stdin.read()
"""


def fill(interpreter: Interpreter) -> None:
    """Two more lines than the queue of any version takes, given 31 before."""
    inject(interpreter, COUNT)
    inject(interpreter, COUNT)


@pytest.mark.parametrize("python", BY_PENDING_CALL, ids=str)
@pytest.mark.parametrize("mode", ["python", "malloc"])
def test_every_line_runs_once_and_no_result_changes(
    python: OfferedInterpreter, mode: str, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "working", mode, python.executable) as target:
        interpreter = target.interpreter
        assert interpreter.version == python.version
        for _ in range(ROUNDS):
            injected = inject(interpreter, COUNT)
            assert (injected.method, injected.stopped_us > 0) == ("pending_call", True)
        target.end_unharmed(ROUNDS)


@pytest.mark.torch
def test_training_with_worker_threads_is_not_disturbed(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "torch") as target:
        for _ in range(ROUNDS):
            inject(target.interpreter, COUNT)
        target.end_unharmed(ROUNDS)


@pytest.mark.parametrize(
    ("python", "mode"),
    [
        *((one, "sleep") for one in BY_PENDING_CALL),
        *((one, mode) for one in OLDEST_AND_NEWEST for mode in ("select", "futex", "read")),
    ],
    ids=str,
)
def test_what_waits_goes_on_waiting_as_long_as_it_wanted_to(
    python: OfferedInterpreter, mode: str, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "waiting", mode, python.executable) as target:
        for _ in range(5):
            wait_until(lambda: read_process_status(target.pid).state == "S")
            inject(target.interpreter, COUNT)
        target.end_unharmed(5)


def test_a_full_queue_is_said(tmp_path: Path) -> None:
    with attach_target(tmp_path, "waiting", "pause") as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        for _ in range(31):
            inject(target.interpreter, COUNT)
        with pytest.raises(InjectionError, match="queue of pending calls is full") as caught:
            fill(target.interpreter)
        assert caught.value.kind == "busy"


@pytest.mark.parametrize("stage", STAGES)
def test_a_signal_at_any_moment_arrives(stage: str, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:

        def send(name: str) -> None:
            if name == stage:
                os.kill(target.pid, signal.SIGUSR1)

        inject(target.interpreter, COUNT, at_stage=send)
        result = target.end()
        assert (result["wrong"], result["counted"], result["heard"] > 0) == (0, 1, True)


@pytest.mark.parametrize("stage", STAGES)
def test_a_target_that_is_killed_is_reported_and_leaves_its_exit_code(
    stage: str, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "working", "python") as target:

        def kill(name: str) -> None:
            if name == stage:
                os.kill(target.pid, signal.SIGKILL)
                wait_until(lambda: read_process_status(target.pid).state in "ZX")

        if stage == "detached":
            inject(target.interpreter, COUNT, at_stage=kill)
        else:
            with pytest.raises(InjectionError) as caught:
                inject(target.interpreter, COUNT, at_stage=kill)
            assert caught.value.kind == "gone"
        assert target.process.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("stage", ["before", *STAGES])
def test_a_job_stopped_by_its_shell_stays_stopped_and_takes_the_line_later(
    stage: str, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "working", "python") as target:

        def stop(name: str) -> None:
            if name == stage:
                os.kill(target.pid, signal.SIGSTOP)

        stop("before")
        inject(target.interpreter, COUNT, at_stage=stop)
        wait_until(lambda: read_process_status(target.pid).state == "T")
        os.kill(target.pid, signal.SIGCONT)
        target.end_unharmed(1)


def test_two_who_reach_in_at_the_same_time_take_turns(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", CLIENT, str(target.pid)],
                env=child_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
        for client in clients:
            assert client.stdin is not None
            client.stdin.close()
        assert [client.wait(60) for client in clients] == [0, 0]
        for client in clients:
            assert client.stdout is not None
            client.stdout.close()
        target.end_unharmed(2 * ROUNDS)


def test_a_debugger_is_named(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        with subprocess.Popen(
            [sys.executable, "-c", DEBUGGER, str(target.pid)],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as debugger:
            assert debugger.stdout is not None
            assert debugger.stdout.readline() == "tracing\n"
            with pytest.raises(
                InjectionError, match=f"traced by python.* \\(PID {debugger.pid}\\)"
            ):
                inject(target.interpreter, COUNT)
            debugger.communicate("")
        inject(target.interpreter, COUNT)
        target.end_unharmed(1)


def test_a_process_that_has_ended_is_gone(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        interpreter = target.interpreter
        target.end()
        with pytest.raises(InjectionError, match="has ended") as caught:
            inject(interpreter, COUNT)
        assert caught.value.kind == "gone"


@pytest.mark.parametrize("source", [b"x" * 1024, b"a\0b"])
def test_what_does_not_fit_is_refused_before_anything_stops(source: bytes, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        with pytest.raises(ValueError, match="1024 bytes without NUL"):
            inject(target.interpreter, source)
        target.end_unharmed(0)
