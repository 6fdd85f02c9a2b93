"""x86-64 frames, held against the kernel's layout (sigcontext.h) number by number."""

from __future__ import annotations

import struct

import pytest

from vramscope.injection.machine import Call, Landings, ThreadState, UnsupportedState
from vramscope.injection.x86_64 import NT_X86_XSTATE, X8664

LANDINGS = Landings(restorer=0x1000, system_call=0x2000, store_result=0x3000)
# In the order of NT_PRSTATUS and of sigcontext.
NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx"),
    *("rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base"),
    *("ds", "es", "fs", "gs"),
)
SIGCONTEXT = (
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx"),
    *("rax", "rcx", "rsp", "rip", "eflags"),
)
OUTSIDE = (1 << 64) - 1
TILE_DATA = 1 << 18


def state(xstate: bytes = bytes(2440), **registers: int) -> ThreadState:
    values = {name: 1000 + number for number, name in enumerate(NAMES)}
    values |= {"rsp": 0x7FFF_0000_1238, "orig_rax": OUTSIDE} | registers
    packed = struct.pack("<27Q", *(values[name] & OUTSIDE for name in NAMES))
    return ThreadState(packed, {NT_X86_XSTATE: xstate}, signal_mask=0x1234)


def registers_of(content: bytes) -> dict[str, int]:
    return dict(zip(NAMES, struct.unpack("<27Q", content), strict=True))


def frame_of(state: ThreadState) -> tuple[dict[str, int], bytes, int]:
    """Registers in the frame, the extended state with its marks, and the mask."""
    frame = X8664().frame(state, LANDINGS)
    start = frame.stack_pointer - frame.address
    assert struct.unpack_from("<Q", frame.content, start - 8) == (LANDINGS.restorer,)
    assert struct.unpack_from("<QQ", frame.content, start) == (7, 0)
    values = struct.unpack_from("<18Q", frame.content, start + 40)
    vectors, mask = (
        struct.unpack_from("<Q", frame.content, start + offset)[0] for offset in (224, 296)
    )
    assert vectors % 64 == 0
    content = frame.content[vectors - frame.address :]
    return dict(zip(SIGCONTEXT, values, strict=True)), content, mask


def test_every_register_stands_where_the_kernel_looks() -> None:
    stopped = state()
    registers, _, mask = frame_of(stopped)
    before = registers_of(stopped.registers)
    assert registers == {name: before[name] for name in SIGCONTEXT}
    assert mask == 0x1234


@pytest.mark.parametrize("result", [-512, -513, -514])
def test_an_interrupted_system_call_begins_again(result: int) -> None:
    registers, _, _ = frame_of(state(rax=result, orig_rax=23, rip=0x5002))
    assert (registers["rax"], registers["rip"]) == (23, 0x5000)


def test_one_that_cannot_begin_again_says_that_it_was_interrupted() -> None:
    registers, _, _ = frame_of(state(rax=-516, orig_rax=35, rip=0x5002))
    assert (registers["rax"], registers["rip"]) == (-4 & OUTSIDE, 0x5002)


def test_a_result_that_only_looks_like_it_stays() -> None:
    registers, _, _ = frame_of(state(rax=-512, orig_rax=-1, rip=0x5002))
    assert (registers["rax"], registers["rip"]) == (-512 & OUTSIDE, 0x5002)


def extended(size: int, available: int, in_use: int) -> bytes:
    content = bytearray(b"\x5a" * size)
    struct.pack_into("<Q", content, 464, available)
    struct.pack_into("<Q", content, 512, in_use)
    return bytes(content)


def marks(content: bytes) -> tuple[int, int, int, int, int]:
    magic, extended_size, features, size = struct.unpack_from("<IIQI", content, 464)
    (end,) = struct.unpack_from("<I", content, size)
    assert (extended_size, len(content)) == (size + 4, size + 4)
    return magic, features, size, end, len(content)


def test_the_extended_state_has_the_marks_of_the_kernel() -> None:
    _, content, _ = frame_of(state(extended(2440, 0x2E7, 7)))
    assert marks(content)[:4] == (0x46505853, 0x2E7, 2440, 0x46505845)
    assert content[:464] == b"\x5a" * 464
    assert content[528:2440] == b"\x5a" * (2440 - 528)


@pytest.mark.parametrize(("in_use", "size"), [(7, 2816), (7 | TILE_DATA, 11008)])
def test_tiles_are_left_out_where_none_are_in_use(in_use: int, size: int) -> None:
    _, content, _ = frame_of(state(extended(11008, 0x602E7, in_use)))
    _, features, found, _, _ = marks(content)
    assert (found, bool(features & TILE_DATA)) == (size, size == 11008)


def test_a_processor_without_xsave_is_refused() -> None:
    with pytest.raises(UnsupportedState):
        X8664().frame(state(b""), LANDINGS)


def test_a_function_is_entered_as_by_a_call_instruction() -> None:
    stopped, machine = state(eflags=0x246 | 1 << 10 | 1 << 8), X8664()
    frame = machine.frame(stopped, LANDINGS)
    for call, returns_to in (
        (Call(0x4000, (11, 12, 13, 14)), LANDINGS.restorer),
        (Call(0x4000, (11, 12, 13, 14), result=0x6000), LANDINGS.store_result),
    ):
        found = registers_of(machine.to_call(stopped, frame, LANDINGS, call))
        assert [found[name] for name in ("rip", "rdi", "rsi", "rdx", "rcx")] == [
            *(0x4000, 11, 12, 13, 14)
        ]
        assert found["rsp"] % 16 == 8
        assert found["orig_rax"] == OUTSIDE
        assert found["eflags"] == 0x246
        (target,) = struct.unpack_from("<Q", frame.content, found["rsp"] - frame.address)
        assert target == returns_to


def test_only_a_futex_that_waits_waits_for_a_lock() -> None:
    machine = X8664()
    for number, command, waits in ((202, 128, True), (202, 129, False), (0, 128, False)):
        assert machine.waits_for_lock(state(orig_rax=number, rsi=command).registers) is waits
