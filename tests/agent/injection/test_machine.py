"""What both processors' frames have in common: they lie below what the thread uses."""

from __future__ import annotations

import struct

import pytest

from vramscope.injection.aarch64 import NT_PRFPREG, Aarch64
from vramscope.injection.machine import Call, Landings, Machine, ThreadState
from vramscope.injection.x86_64 import NT_X86_XSTATE, X8664

LANDINGS = Landings(restorer=0x1000, system_call=0x2000, store_result=0x3000)
STACK = 0x7FFF_0000_1238
RED_ZONE = 128


def x86_state() -> ThreadState:
    registers = list(range(100, 127))
    registers[19] = STACK
    registers[15] = (1 << 64) - 1
    return ThreadState(struct.pack("<27Q", *registers), {NT_X86_XSTATE: bytes(2440)}, 5)


def aarch64_state() -> ThreadState:
    registers = list(range(100, 134))
    registers[31] = STACK & ~15
    return ThreadState(struct.pack("<34Q", *registers), {NT_PRFPREG: bytes(528)}, 5)


MACHINES: list[tuple[Machine, ThreadState]] = [(X8664(), x86_state()), (Aarch64(), aarch64_state())]


@pytest.mark.parametrize(("machine", "state"), MACHINES)
def test_the_frame_spares_what_the_thread_uses(machine: Machine, state: ThreadState) -> None:
    frame = machine.frame(state, LANDINGS)
    end = frame.address + len(frame.content)
    assert end <= (STACK & ~15 if machine.name == "aarch64" else STACK - RED_ZONE)
    assert end > STACK - 2 * 4096
    assert frame.address <= frame.stack_pointer < end


@pytest.mark.parametrize(("machine", "state"), MACHINES)
def test_only_this_very_frame_is_recognised(machine: Machine, state: ThreadState) -> None:
    frame = machine.frame(state, LANDINGS)
    home = machine.to_frame(state.registers, frame, LANDINGS)
    assert machine.instruction(home) == LANDINGS.restorer
    # It stands at the restorer, not yet in the system call.
    assert not machine.takes_frame(home, frame)


@pytest.mark.parametrize(("machine", "state"), MACHINES)
def test_calls_start_at_their_function(machine: Machine, state: ThreadState) -> None:
    frame = machine.frame(state, LANDINGS)
    call = machine.to_call(state, frame, LANDINGS, Call(0x4000, (1, 2), result=0x5000))
    assert machine.instruction(call) == 0x4000
    system_call = machine.to_system_call(state, frame, LANDINGS, 9, (1, 2))
    assert machine.instruction(system_call) == LANDINGS.system_call
    assert not machine.waits_for_lock(call)
