"""From 3.13 on, the lock of the queue is found and looked at."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.support.at_the_queue import AT_ITS_QUEUE, fill_queue, stopped_while
from tests.support.attach_client import running
from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import InjectionError, find_interpreter, inject
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.queue_lock import find_queue_lock, is_locked

PYTHONS = [one for one in offered_interpreters() if one.version < (3, 14)]
# Of a PyMutex: whether it is held, and whether somebody waits.
HELD, WAITED_FOR, HELD_AND_WAITED_FOR = b"\1", b"\2", b"\3"


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_it_exists_where_it_is_a_mutex(python: OfferedInterpreter, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        for _ in range(3):
            with TargetMemory(target.pid) as memory:
                lock = find_queue_lock(memory, target.interpreter)
                assert (lock != 0) is (python.version >= (3, 13))
                assert not is_locked(memory, lock)
            inject(target.interpreter, COUNT)
        target.end_unharmed(3)


@pytest.mark.parametrize("python", [one for one in PYTHONS if one.version >= (3, 13)], ids=str)
def test_a_process_stopped_with_the_lock_in_its_hands_is_tried_again_and_given_up(
    python: OfferedInterpreter, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "waiting", "pause", python.executable) as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        with TargetMemory(target.pid, writable=True) as memory:
            lock = find_queue_lock(memory, target.interpreter)
            memory.write(lock, b"\1")
            assert is_locked(memory, lock)
            with pytest.raises(
                InjectionError, match="queue of pending calls is never free"
            ) as caught:
                inject(target.interpreter, COUNT)
            assert caught.value.kind == "busy"
            memory.write(lock, b"\0")
            inject(target.interpreter, COUNT)


@pytest.mark.parametrize("python", [one for one in PYTHONS if one.version >= (3, 13)], ids=str)
def test_it_is_the_one_that_a_process_at_its_queue_waits_for(python: OfferedInterpreter) -> None:
    with running(str(python.executable), "-c", AT_ITS_QUEUE) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        target = find_interpreter(job.pid)
        with TargetMemory(target.pid, writable=True) as memory:
            lock = find_queue_lock(memory, target)
            fill_queue(job)
            with stopped_while(target.pid, lambda: not is_locked(memory, lock)):
                memory.write(lock, HELD)
            wait_until(lambda: memory.read(lock, 1) == HELD_AND_WAITED_FOR)
            assert is_locked(memory, lock)
            memory.write(lock, WAITED_FOR)
        print(file=job.stdin, flush=True)
        assert job.stdout.readline() == "room again\n"
        for _ in range(50):
            inject(target, b"pass\n")
        inject(target, b"print('still here', flush=True)\n")
        assert job.stdout.readline() == "still here\n"


@pytest.mark.parametrize("python", [one for one in PYTHONS if one.version >= (3, 13)], ids=str)
def test_without_it_nothing_is_tried(python: OfferedInterpreter, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        symbols = target.interpreter.symbols
        unknown = {name: symbols[name] for name in symbols if name != "_PyRuntime"}
        with pytest.raises(InjectionError, match="not found") as caught:
            inject(dataclasses.replace(target.interpreter, symbols=unknown), COUNT)
        assert caught.value.kind == "failed"
        target.end_unharmed(0)
