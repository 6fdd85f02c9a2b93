"""Requests do to a child what they say, and nothing is swallowed on the way."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.attach_targets import wait_until
from vramscope.injection import ptrace
from vramscope.injection.process_status import read_process_status
from vramscope.injection.tracing_thread import run_as_tracer

PAUSE = "import signal\nprint('ready', flush=True)\nwhile True: signal.pause()"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PAUSE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_until(lambda: read_process_status(process.pid).state == "S")
        yield process
        process.kill()


def test_registers_and_mask_are_what_was_written(child: subprocess.Popen[str]) -> None:
    def work() -> None:
        ptrace.seize(child.pid)
        ptrace.interrupt(child.pid)
        assert ptrace.wait_for_stop(child.pid, 10) == ptrace.Stop("event")
        registers = ptrace.read_registers(child.pid, ptrace.NT_PRSTATUS)
        assert registers is not None
        ptrace.write_registers(child.pid, ptrace.NT_PRSTATUS, registers)
        assert ptrace.read_registers(child.pid, ptrace.NT_PRSTATUS) == registers
        assert ptrace.read_registers(child.pid, 0x7FFF) is None
        ptrace.write_signal_mask(child.pid, 1 << (signal.SIGUSR1 - 1))
        assert ptrace.read_signal_mask(child.pid) == 1 << (signal.SIGUSR1 - 1)
        ptrace.write_signal_mask(child.pid, 0)
        ptrace.detach(child.pid)

    run_as_tracer(work)
    wait_until(lambda: read_process_status(child.pid).state == "S")


def test_two_tracers_at_once_never_read_each_others_registers() -> None:
    def work(pid: int, read_first: threading.Barrier, results: list[set[bytes | None]]) -> None:
        ptrace.seize(pid)
        ptrace.interrupt(pid)
        assert ptrace.wait_for_stop(pid, 10) == ptrace.Stop("event")
        read_first.wait(10)
        results.append({ptrace.read_registers(pid, ptrace.NT_PRSTATUS) for _ in range(2000)})
        ptrace.detach(pid)

    results: list[set[bytes | None]] = []
    together = threading.Barrier(2)
    command = [sys.executable, "-c", PAUSE]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as one,
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        tracers = [
            pool.submit(run_as_tracer, functools.partial(work, child.pid, together, results))
            for child in (one, other)
        ]
        for tracer in tracers:
            tracer.result(60)
        one.kill()
        other.kill()
    first, second = results
    assert (len(first), len(second)) == (1, 1)
    assert first != second


def test_a_signal_is_seen_and_handed_on(child: subprocess.Popen[str]) -> None:
    def work() -> None:
        ptrace.seize(child.pid)
        os.kill(child.pid, signal.SIGTERM)
        assert ptrace.wait_for_stop(child.pid, 10) == ptrace.Stop("signal", signal.SIGTERM)
        # Looked at, not taken: it is still there.
        assert ptrace.wait_for_stop(child.pid, 10) == ptrace.Stop("signal", signal.SIGTERM)
        ptrace.detach(child.pid, deliver=signal.SIGTERM)

    run_as_tracer(work)
    assert child.wait(10) == -signal.SIGTERM


def test_a_signal_survives_a_tracer_that_ends_with_it_in_hand(
    child: subprocess.Popen[str],
) -> None:
    def work() -> None:
        ptrace.seize(child.pid)
        os.kill(child.pid, signal.SIGTERM)
        ptrace.wait_for_stop(child.pid, 10)

    run_as_tracer(work)
    assert child.wait(10) == -signal.SIGTERM


def test_borders_of_system_calls(child: subprocess.Popen[str]) -> None:
    def work() -> None:
        ptrace.seize(child.pid)
        ptrace.interrupt(child.pid)
        ptrace.wait_for_stop(child.pid, 10)
        ptrace.resume(child.pid, to_system_call=True)  # pause begins again
        assert ptrace.wait_for_stop(child.pid, 10) == ptrace.Stop("syscall")
        ptrace.resume(child.pid)
        assert ptrace.wait_for_stop(child.pid, 0.01) is None

    # It ends at the border, untaken: no signal may come of that.
    run_as_tracer(work)
    wait_until(lambda: read_process_status(child.pid).state == "S")
    assert child.poll() is None


def test_an_end_is_an_end(child: subprocess.Popen[str]) -> None:
    def work() -> None:
        ptrace.seize(child.pid)
        child.kill()
        with pytest.raises(ptrace.ThreadGone):
            ptrace.wait_for_stop(child.pid, 10)
        with pytest.raises(ptrace.ThreadGone):
            ptrace.detach(child.pid)

    run_as_tracer(work)
    assert child.wait(10) == -signal.SIGKILL


def test_what_may_not_be_traced() -> None:
    with pytest.raises(PermissionError):
        ptrace.seize(os.getpid())
    with pytest.raises(ProcessLookupError):
        ptrace.seize(2**22 + 1)
