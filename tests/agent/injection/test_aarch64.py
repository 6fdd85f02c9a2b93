"""aarch64 frames, held against the kernel's layout (sigcontext.h) number by number."""

from __future__ import annotations

import struct

import pytest

from vramscope.injection.aarch64 import NT_ARM_SVE, NT_PRFPREG, Aarch64
from vramscope.injection.machine import Call, Landings, ThreadState, UnsupportedState

LANDINGS = Landings(restorer=0x1000, system_call=0x2000)
STACK = 0x7FFF_0000_1230
SIGCONTEXT = 128 + 176
RECORDS = SIGCONTEXT + 288
FPREGS = bytes(range(256)) * 2 + struct.pack("<IIII", 0x11, 0x22, 0, 0)


def state(pstate: int = 0x6000_0000, sve: bytes | None = None) -> ThreadState:
    registers = [*range(100, 131), STACK, 0x5000, pstate]
    sets = {NT_PRFPREG: FPREGS} | ({NT_ARM_SVE: sve} if sve else {})
    return ThreadState(struct.pack("<34Q", *registers), sets, signal_mask=0x1234)


def scalable(length: int, flags: int) -> bytes:
    size = 32 * length + 17 * length // 8
    header = struct.pack("<IIHHHH", 16 + size + 8, 16 + size + 8, length, length, flags, 0)
    return header + b"\x5a" * size + bytes(8)


def test_every_register_stands_where_the_kernel_looks() -> None:
    stopped = state()
    frame = Aarch64().frame(stopped, LANDINGS)
    assert (frame.address, frame.address % 16) == (frame.stack_pointer, 0)
    assert struct.unpack_from("<Q", frame.content, 128 + 40) == (0x1234,)
    assert frame.content[SIGCONTEXT + 8 : SIGCONTEXT + 8 + 272] == stopped.registers
    assert len(frame.content) == RECORDS + 4096


def test_vectors_come_after_their_status_and_a_terminator_ends_the_records() -> None:
    content = Aarch64().frame(state(), LANDINGS).content[RECORDS:]
    assert struct.unpack_from("<IIII", content) == (0x46508001, 528, 0x11, 0x22)
    assert content[16:528] == FPREGS[:512]
    assert struct.unpack_from("<II", content, 528) == (0, 0)


@pytest.mark.parametrize("length", [16, 32, 64])
def test_scalable_vectors_in_use_get_a_record(length: int) -> None:
    content = Aarch64().frame(state(sve=scalable(length, 1)), LANDINGS).content[RECORDS + 528 :]
    magic, size, vector_length = struct.unpack_from("<IIH", content)
    used = 32 * length + 17 * length // 8
    assert (magic, size % 16, vector_length) == (0x53564501, 0, length)
    assert content[16 : 16 + used] == b"\x5a" * used
    assert size >= 16 + used
    assert struct.unpack_from("<II", content, size) == (0, 0)


def test_scalable_vectors_not_in_use_get_none() -> None:
    content = Aarch64().frame(state(sve=scalable(32, 0)), LANDINGS).content
    assert struct.unpack_from("<II", content, RECORDS + 528) == (0, 0)


@pytest.mark.parametrize("content", [scalable(256, 1), scalable(32, 1)[:16]])
def test_what_no_frame_of_ours_holds_is_refused(content: bytes) -> None:
    with pytest.raises(UnsupportedState):
        Aarch64().frame(state(sve=content), LANDINGS)


def test_a_function_returns_into_the_frame_and_needs_no_landing_pad() -> None:
    stopped, machine = state(pstate=0x6000_0000 | 3 << 10 | 1 << 21), Aarch64()
    frame = machine.frame(stopped, LANDINGS)
    call = machine.to_call(stopped, frame, LANDINGS, Call(0x4000, (1, 2, 3)))
    registers = struct.unpack("<34Q", call)
    assert (registers[:3], registers[30:]) == (
        (1, 2, 3),
        (LANDINGS.restorer, frame.stack_pointer, 0x4000, 0x6000_0000),
    )
    # The frame keeps them: the thread goes on to its landing pad.
    assert (
        struct.unpack_from("<Q", frame.content, SIGCONTEXT + 8 + 264)[0]
        == struct.unpack("<34Q", stopped.registers)[33]
    )
