"""x86-64: the signal frame of the kernel (arch/x86/include/asm/sigframe.h) and how calls look.

The frame is the safety net of everything here: a function that is run in a stopped thread returns
to ``rt_sigreturn``, by which the kernel puts back every register as it was, vectors included, even
when nobody traces the thread any more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from vramscope.injection.machine import (
    FUTEX_COMMAND,
    FUTEX_WAITS,
    Call,
    Landings,
    SignalFrame,
    ThreadState,
    UnsupportedState,
)

NT_X86_XSTATE: Final = 0x202

_REGISTERS: Final = struct.Struct("<27Q")
(_R15, _R14, _R13, _R12, _RBP, _RBX, _R11, _R10, _R9, _R8, _RAX, _RCX, _RDX, _RSI, _RDI) = range(15)
_ORIG_RAX, _RIP, _CS, _EFLAGS, _RSP, _SS = range(15, 21)
_MASK: Final = (1 << 64) - 1
_RED_ZONE: Final = 128
# Direction and single-step must be off when a function is entered, alignment checks as well.
_FLAGS_OFF: Final = 1 << 10 | 1 << 8 | 1 << 18

# uc_flags: the extended state is there, and the stack segment is to be restored as it stands.
_UC_FLAGS: Final = 1 | 2 | 4
# An alternative stack that the kernel refuses, so that it leaves the thread's own alone.
_NO_STACK: Final = (0, 0x1000, 0)
_CONTEXT: Final = struct.Struct("<QQ QIxxxxQ 18Q 4H 4Q Q 64x Q 128x")
_MAGIC_START, _MAGIC_END = 0x46505853, 0x46505845
_SOFTWARE_BYTES: Final = 464
_STATE_BITS: Final = 512
_TILE_DATA, _TILE_DATA_BYTES = 1 << 18, 8192

_RT_SIGRETURN, _FUTEX = 15, 202
_EINTR: Final = 4
# What a system call leaves in rax when a signal interrupts it (include/linux/errno.h).
_RESTARTED: Final = (-512, -513, -514)
_RESTARTED_BY_BLOCK: Final = -516


class X8664:
    """The processor of most machines that train."""

    name = "x86_64"
    result_survives = False
    vector_sets: Sequence[int] = (NT_X86_XSTATE,)
    # mov $15, %rax; syscall, and the same by %eax.
    restorer_code: Sequence[bytes] = (
        bytes.fromhex("48c7c00f0000000f05"),
        bytes.fromhex("b80f0000000f05"),
    )
    # syscall; ret
    system_call_code: Sequence[bytes] = (bytes.fromhex("0f05c3"),)
    # mov %rax, (%rbx); pop %rbx; ret, and the same with %rbp: the restorer overwrites %rax.
    store_result_code: Sequence[bytes] = (
        bytes.fromhex("4889035bc3"),
        bytes.fromhex("488945005dc3"),
    )
    page_places: Sequence[int] = (0x3AC0_0000_0000, 0x3AC8_0000_0000, 0x2EC0_0000_0000)
    number_of_mmap = 9
    number_of_memfd_create = 319
    number_of_openat = 257
    number_of_close = 3

    def check(self, thread: int) -> None:
        """Nothing to refuse: shadow stacks are seen in /proc before."""

    def frame(self, state: ThreadState, landings: Landings) -> SignalFrame:
        """The frame from which the kernel restores ``state`` (setup_rt_frame, reversed)."""
        registers = list(_REGISTERS.unpack(state.registers))
        _end_system_call(registers)
        vectors = _frame_vectors(state.vectors.get(NT_X86_XSTATE, b""))
        vector_address = (registers[_RSP] - _RED_ZONE - len(vectors)) & ~63
        size = 8 + _CONTEXT.size
        # The kernel wants 8 bytes past a multiple of 16, as after a call instruction.
        address = ((vector_address - size) & ~15) - 8
        context = _CONTEXT.pack(
            *(_UC_FLAGS, 0, *_NO_STACK),
            *(registers[n] for n in (_R8, _R9, _R10, _R11, _R12, _R13, _R14, _R15)),
            *(registers[n] for n in (_RDI, _RSI, _RBP, _RBX, _RDX, _RAX, _RCX, _RSP, _RIP)),
            registers[_EFLAGS],
            *(registers[_CS], 0, 0, registers[_SS]),
            *(0, 0, 0, 0),
            vector_address,
            state.signal_mask,
        )
        content = landings.restorer.to_bytes(8, "little") + context
        content = content.ljust(vector_address - address, b"\0") + vectors
        # Below it: the landing that stores a result, and what that one takes off the stack.
        below = landings.store_result.to_bytes(8, "little") + bytes(8)
        return SignalFrame(address - len(below), address + 8, below + content)

    def to_call(
        self, state: ThreadState, frame: SignalFrame, landings: Landings, call: Call
    ) -> bytes:
        """Registers with which a function is entered that returns into the frame."""
        registers = list(_REGISTERS.unpack(state.registers))
        for register, value in zip((_RDI, _RSI, _RDX, _RCX), call.arguments, strict=False):
            registers[register] = value & _MASK
        registers[_RAX] = 0
        registers[_RIP] = call.function
        if call.result and landings.store_result:
            registers[_RBX] = registers[_RBP] = call.result
            registers[_RSP] = frame.address
        else:
            registers[_RSP] = frame.stack_pointer - 8
        return _outside_system_call(registers)

    def to_system_call(
        self,
        state: ThreadState,
        frame: SignalFrame,
        landings: Landings,
        number: int,
        arguments: Sequence[int],
    ) -> bytes:
        """Registers with which a system call is made that returns into the frame."""
        registers = list(_REGISTERS.unpack(state.registers))
        order = (_RDI, _RSI, _RDX, _R10, _R8, _R9)
        for register, value in zip(order, arguments, strict=False):
            registers[register] = value & _MASK
        registers[_RAX] = number
        registers[_RIP] = landings.system_call
        registers[_RSP] = frame.stack_pointer - 8
        return _outside_system_call(registers)

    def to_frame(self, registers: bytes, frame: SignalFrame, landings: Landings) -> bytes:
        """Registers with which the frame is taken at once; a system call at hand is not made."""
        changed = list(_REGISTERS.unpack(registers))
        changed[_RIP] = landings.restorer
        changed[_RSP] = frame.stack_pointer
        return _outside_system_call(changed)

    def skip_system_call(self, thread: int) -> None:
        """Nothing to do: orig_rax is one of the registers."""

    def waits_for_lock(self, registers: bytes) -> bool:
        """Whether a thread that stands before a system call is about to wait on a futex."""
        values = _REGISTERS.unpack(registers)
        return values[_ORIG_RAX] == _FUTEX and values[_RSI] & FUTEX_COMMAND in FUTEX_WAITS

    def result(self, registers: bytes) -> int:
        """Signed result of a system call."""
        return _signed(_REGISTERS.unpack(registers)[_RAX])

    def instruction(self, registers: bytes) -> int:
        """Address of the instruction that comes next."""
        return int(_REGISTERS.unpack(registers)[_RIP])

    def takes_frame(self, registers: bytes, frame: SignalFrame) -> bool:
        """Whether a thread that stands before a system call is about to return by this frame."""
        values = _REGISTERS.unpack(registers)
        return (values[_ORIG_RAX], values[_RSP]) == (_RT_SIGRETURN, frame.stack_pointer)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _outside_system_call(registers: list[int]) -> bytes:
    registers[_ORIG_RAX] = _MASK
    registers[_EFLAGS] &= ~_FLAGS_OFF
    return _REGISTERS.pack(*registers)


def _end_system_call(registers: list[int]) -> None:
    """Do what the kernel does at the end of a stop, for rt_sigreturn does not do it."""
    result = _signed(registers[_RAX])
    if _signed(registers[_ORIG_RAX]) < 0:
        return
    if result in _RESTARTED:
        registers[_RAX] = registers[_ORIG_RAX]
        registers[_RIP] -= 2
    elif result == _RESTARTED_BY_BLOCK:
        # rt_sigreturn makes the kernel forget how to go on with it.
        registers[_RAX] = -_EINTR & _MASK


def _frame_vectors(state: bytes) -> bytes:
    """The extended state as a frame holds it: with the kernel's own marks in it and behind it."""
    if len(state) < _STATE_BITS + 64:
        raise UnsupportedState("the processor does not save its vector registers by XSAVE")
    (available,) = struct.unpack_from("<Q", state, _SOFTWARE_BYTES)
    (in_use,) = struct.unpack_from("<Q", state, _STATE_BITS)
    size = len(state)
    if available & _TILE_DATA and not in_use & _TILE_DATA and size > _TILE_DATA_BYTES + 576:
        # A frame larger than what this thread has ever used is not accepted.
        available &= ~_TILE_DATA
        size -= _TILE_DATA_BYTES
    content = bytearray(state[:size])
    software = struct.pack("<IIQI28x", _MAGIC_START, size + 4, available, size)
    content[_SOFTWARE_BYTES : _SOFTWARE_BYTES + len(software)] = software
    return bytes(content) + _MAGIC_END.to_bytes(4, "little")
