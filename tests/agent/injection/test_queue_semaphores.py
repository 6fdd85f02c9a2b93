"""Up to 3.12, the lock of the queue is among the semaphores that are looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.at_the_queue import AT_ITS_QUEUE, fill_queue, stopped_while
from tests.support.attach_client import running
from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import InjectionError, find_interpreter, inject
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.queue_semaphores import QueueSemaphores

PYTHONS = [one for one in offered_interpreters() if one.version < (3, 14)]
WITH_SEMAPHORE = [one for one in PYTHONS if one.version < (3, 13)]


def waits_at(thread: int) -> int | None:
    """Address of what a thread waits for in the kernel, if it does."""
    call = Path(f"/proc/{thread}/syscall").read_text(encoding="ascii").split()
    return int(call[1], 16) if len(call) > 1 else None


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_there_are_few_and_they_are_free(python: OfferedInterpreter, tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python", python.executable) as target:
        with TargetMemory(target.pid) as memory:
            found = QueueSemaphores(memory, target.interpreter)
            assert (0 < len(found.addresses) < 20) is (python.version < (3, 13))
            wait_until(lambda: not found.are_held())
        target.end_unharmed(0)


@pytest.mark.parametrize("python", WITH_SEMAPHORE, ids=str)
def test_who_comes_to_the_queue_waits_for_one_of_them(python: OfferedInterpreter) -> None:
    # The lock is held for nanoseconds, too short to be seen: so it is taken away from the process.
    with running(str(python.executable), "-c", AT_ITS_QUEUE) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        target = find_interpreter(job.pid)
        with TargetMemory(target.pid, writable=True) as memory:
            found = QueueSemaphores(memory, target)
            thread = fill_queue(job)
            with stopped_while(target.pid, lambda: not found.are_held()):
                for address in found.addresses:
                    memory.write(address, b"\0")
            wait_until(lambda: waits_at(thread) in found.addresses)
            with stopped_while(target.pid, found.are_held):
                for address in found.addresses:
                    memory.write(address, b"\1")
        print(file=job.stdin, flush=True)
        assert job.stdout.readline() == "room again\n"
        for _ in range(50):
            inject(target, b"pass\n")
        inject(target, b"print('still here', flush=True)\n")
        assert job.stdout.readline() == "still here\n"


@pytest.mark.parametrize("python", WITH_SEMAPHORE, ids=str)
def test_a_process_stopped_with_the_lock_in_its_hands_is_not_made_to_wait_for_itself(
    python: OfferedInterpreter, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "waiting", "pause", python.executable) as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        with TargetMemory(target.pid, writable=True) as memory:
            addresses = QueueSemaphores(memory, target.interpreter).addresses
            stages: list[str] = []

            def hold(stage: str) -> None:
                stages.append(stage)
                if stage == "stopped":
                    for address in addresses:
                        memory.write(address, b"\0")

            with pytest.raises(InjectionError, match="never free") as caught:
                inject(target.interpreter, COUNT, at_stage=hold)
            assert caught.value.kind == "busy"
            assert "calling" not in stages
            for address in addresses:
                memory.write(address, b"\1")
            inject(target.interpreter, COUNT)
