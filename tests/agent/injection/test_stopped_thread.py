"""A stopped thread gets everything back, whether its tracer lives or dies."""

from __future__ import annotations

import errno
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attach_targets import AttachTarget, attach_target, wait_until
from vramscope.injection import InjectionError, inject, ptrace
from vramscope.injection.landings import find_landings
from vramscope.injection.machine import Call, ThreadState
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import read_mappings
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.stopped_thread import BadMoment, StoppedThread
from vramscope.injection.tracing_thread import run_as_tracer

machine = machine_named(os.uname().machine)
assert machine is not None
MACHINE = machine

XSTATE, AVX = 0x202, 1 << 2
# In waiting for a signal, none of the vectors is used: what is put there must stay there.
PATTERN = bytes(range(255, -1, -1))


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[AttachTarget]:
    with attach_target(tmp_path, "waiting", "pause") as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        yield target


def stop(pid: int) -> None:
    ptrace.seize(pid)
    ptrace.interrupt(pid)
    assert ptrace.wait_for_stop(pid, 10) == ptrace.Stop("event")


def read_state(pid: int) -> ThreadState:
    """All that a thread has, once it waits."""

    def work() -> ThreadState:
        stop(pid)
        registers = ptrace.read_registers(pid, ptrace.NT_PRSTATUS)
        assert registers is not None
        vectors = {
            number: content
            for number in MACHINE.vector_sets
            if (content := ptrace.read_registers(pid, number)) is not None
        }
        state = ThreadState(registers, vectors, ptrace.read_signal_mask(pid))
        ptrace.detach(pid)
        return state

    wait_until(lambda: read_process_status(pid).state == "S")
    return run_as_tracer(work)


def fill_vectors(pid: int) -> None:
    """Give a thread vectors, a signal mask and a direction that nobody would guess."""

    def work() -> None:
        stop(pid)
        for number in MACHINE.vector_sets:
            content = ptrace.read_registers(pid, number)
            if content is not None:
                ptrace.write_registers(pid, number, filled(number, content))
        ptrace.write_signal_mask(pid, 1 << (signal.SIGUSR2 - 1) | 1 << (signal.SIGHUP - 1))
        ptrace.detach(pid)

    run_as_tracer(work)


def filled(number: int, content: bytes) -> bytes:
    changed = bytearray(content)
    if number != XSTATE:
        changed[:256] = PATTERN
        return bytes(changed)
    (available,) = struct.unpack_from("<Q", content, 464)
    changed[160:416] = PATTERN  # xmm0 to xmm15
    in_use = 1 | 2
    if available & AVX:
        changed[576:832] = PATTERN  # the upper halves of ymm0 to ymm15
        in_use |= AVX
    struct.pack_into("<Q", changed, 512, in_use)
    return bytes(changed)


STAGES_OF_DEATH = [
    *("stopped", "framed", "masked", "before system call", "in system call", "after system call"),
    *("written", "calling", "running", "called", "returning", "home", "restored"),
]


@pytest.mark.parametrize("stage", [*STAGES_OF_DEATH, "none"])
def test_no_bit_of_it_changes_when_the_tracer_is_killed(stage: str, waiting: AttachTarget) -> None:
    fill_vectors(waiting.pid)
    before = read_state(waiting.pid)
    interpreter = waiting.interpreter

    def die(name: str) -> None:
        if name == stage:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        inject(interpreter, b"pass\n", at_stage=die)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == (0 if stage == "none" else -signal.SIGKILL)
    assert read_state(waiting.pid) == before


def call_in(pid: int, *calls: Call) -> None:
    with TargetMemory(pid, writable=True) as memory:
        landings = find_landings(memory, read_mappings(pid), MACHINE, "")

        def work() -> None:
            with StoppedThread(pid, memory, MACHINE, landings) as thread:
                for call in calls:
                    thread.call(call)

        run_as_tracer(work)


def test_a_function_that_faults_is_undone(waiting: AttachTarget) -> None:
    before = read_state(waiting.pid)
    with pytest.raises(InjectionError, match="failed with signal 11") as caught:
        call_in(waiting.pid, Call(0x10, ()))
    assert caught.value.kind == "failed"
    assert read_state(waiting.pid) == before


def test_several_functions_at_one_stop(waiting: AttachTarget) -> None:
    before = read_state(waiting.pid)
    get_state = waiting.interpreter.symbols["PyGILState_GetThisThreadState"].address
    call_in(waiting.pid, *[Call(get_state, ())] * 3)
    assert read_state(waiting.pid) == before


def test_a_restartable_sequence_is_not_left(waiting: AttachTarget) -> None:
    mappings = read_mappings(waiting.pid)
    (room,) = (mapping.start for mapping in mappings if mapping.path == "[stack]")
    with TargetMemory(waiting.pid, writable=True) as memory:
        landings = find_landings(memory, mappings, MACHINE, "")
        areas: list[int] = []

        def in_sequence(stage: str) -> None:
            if stage == "stopped":
                areas.append(ptrace.rseq_area(waiting.pid))
                registers = ptrace.read_registers(waiting.pid, ptrace.NT_PRSTATUS) or b""
                start = MACHINE.instruction(registers) - 4
                memory.write(room, struct.pack("<QQQQ", 0, start, 8, 0))
                memory.write(areas[0] + 8, struct.pack("<Q", room))
            if stage == "restored":
                memory.write(areas[0] + 8, bytes(8))

        def work() -> None:
            with StoppedThread(waiting.pid, memory, MACHINE, landings, in_sequence) as thread:
                thread.call(Call(0x10, ()))

        if run_as_tracer(lambda: has_no_rseq(waiting.pid)):
            pytest.skip("the C library or the kernel knows no restartable sequences")
        before = read_state(waiting.pid)
        with pytest.raises(BadMoment, match="restartable"):
            run_as_tracer(work)
    assert read_state(waiting.pid) == before


def has_no_rseq(pid: int) -> bool:
    stop(pid)
    area = ptrace.rseq_area(pid)
    ptrace.detach(pid)
    return area == 0


class NoRoom(TargetMemory):
    """Memory below a stack that has not grown so far yet."""

    def write(self, address: int, content: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("kind", "stack", "words"),
    [(NoRoom, None, "no room on the stack"), (TargetMemory, range(1), "not its own")],
)
def test_where_a_frame_has_no_place_nothing_is_run(
    kind: type[TargetMemory], stack: range | None, words: str, waiting: AttachTarget
) -> None:
    with kind(waiting.pid, writable=True) as memory:
        landings = find_landings(memory, read_mappings(waiting.pid), MACHINE, "")

        def work() -> None:
            with StoppedThread(waiting.pid, memory, MACHINE, landings, stack=stack) as thread:
                thread.system_call(MACHINE.number_of_close, (-1,))

        with pytest.raises(BadMoment, match=words) as caught:
            run_as_tracer(work)
    assert caught.value.lasting.kind == "memory"
    wait_until(lambda: read_process_status(waiting.pid).state == "S")


def test_memory_that_is_not_mapped_is_refused(waiting: AttachTarget) -> None:
    with TargetMemory(waiting.pid, writable=True) as memory:
        landings = find_landings(memory, read_mappings(waiting.pid), MACHINE, "")

        def work() -> None:
            with StoppedThread(waiting.pid, memory, MACHINE, landings) as thread:
                thread.write(0x10, b"nothing is mapped there")

        with pytest.raises(InjectionError, match="cannot be written") as caught:
            run_as_tracer(work)
    assert caught.value.kind == "memory"
    wait_until(lambda: read_process_status(waiting.pid).state == "S")
