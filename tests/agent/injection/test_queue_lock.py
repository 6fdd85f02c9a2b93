"""From 3.13 on, the lock of the queue is found and looked at."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.support.attach_client import running
from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import InjectionError, find_interpreter, inject
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.queue_lock import find_queue_lock, is_locked

ALWAYS_AT_ITS_QUEUE = """
import ctypes
nothing = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
add = ctypes.pythonapi.Py_AddPendingCall
print("ready", flush=True)
while True:
    for _ in range(20):
        add(nothing, None)
"""

PYTHONS = [one for one in offered_interpreters() if one.version < (3, 14)]


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
def test_it_is_the_one_that_a_process_holds_while_it_is_at_its_queue(
    python: OfferedInterpreter,
) -> None:
    with running(str(python.executable), "-c", ALWAYS_AT_ITS_QUEUE) as job:
        target = find_interpreter(job.pid)
        with TargetMemory(target.pid) as memory:
            lock = find_queue_lock(memory, target)
            wait_until(lambda: is_locked(memory, lock))
            wait_until(lambda: not is_locked(memory, lock))
        for _ in range(50):
            inject(target, b"pass\n")
        inject(target, b"print('still here', flush=True)\n")
        assert job.stdout is not None
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
