"""aarch64: the signal frame of the kernel (arch/arm64/kernel/signal.c) and how calls look.

A system call that a stop interrupts has been wound back already when the stop is reported, so the
registers say themselves that it begins again. What is lost is the time that a *relative* sleep
had passed: it begins again as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from vramscope.injection import ptrace
from vramscope.injection.machine import (
    FUTEX_COMMAND,
    FUTEX_WAITS,
    Call,
    Landings,
    SignalFrame,
    ThreadState,
    UnsupportedState,
)

NT_PRFPREG: Final = 2
NT_ARM_SYSTEM_CALL: Final = 0x404
NT_ARM_SVE: Final = 0x405
NT_ARM_GCS: Final = 0x410

# x0 to x30, sp, pc, pstate.
_REGISTERS: Final = struct.Struct("<34Q")
_X8, _X30, _SP, _PC, _PSTATE = 8, 30, 31, 32, 33
_MASK: Final = (1 << 64) - 1
# BTYPE, or the first instruction would have to be a landing pad; and single-step.
_STATE_OFF: Final = 3 << 10 | 1 << 21

# siginfo, uc_flags and uc_link, a stack that the kernel refuses, the signal mask and its reserve,
# padding to 16, fault_address, registers, padding to 16; then come the records.
_FRAME: Final = struct.Struct("<128x QQ QIxxxxQ Q 120x 8x Q 34Q 8x")
_NO_STACK: Final = (0, 0x1000, 0)
_RECORDS_BYTES: Final = 4096
_RECORD: Final = struct.Struct("<II")
_FPSIMD_MAGIC, _SVE_MAGIC = 0x46508001, 0x53564501
_FPSIMD_BYTES: Final = 528
_VREGS_BYTES: Final = 512
# size, max_size, vector length in bytes, maximum, flags, reserved; the registers follow.
_SVE_HEADER: Final = struct.Struct("<IIHHHH")
_SVE_IN_USE: Final = 1

_RT_SIGRETURN, _FUTEX = 139, 98


class Aarch64:
    """The processor of Grace and Graviton."""

    name = "aarch64"
    result_survives = True
    vector_sets: Sequence[int] = (NT_PRFPREG, NT_ARM_SVE)
    # mov x8, #139; svc #0
    restorer_code: Sequence[bytes] = (bytes.fromhex("681180d2010000d4"),)
    # svc #0; ret
    system_call_code: Sequence[bytes] = (bytes.fromhex("010000d4c0035fd6"),)
    store_result_code: Sequence[bytes] = ()
    # Below 2**39, the smallest address space that is in use.
    page_places: Sequence[int] = (0x3A_C000_0000, 0x3B_C000_0000, 0x2E_C000_0000)
    number_of_mmap = 222
    number_of_memfd_create = 279
    number_of_openat = 56
    number_of_close = 57

    def check(self, thread: int) -> None:
        """Refuse a thread whose return addresses the processor guards (GCS).

        Raises:
            UnsupportedState: it has a guarded control stack.
        """
        guarded = ptrace.read_registers(thread, NT_ARM_GCS)
        if guarded and guarded[0] & 1:
            raise UnsupportedState("its threads have shadow stacks")

    def frame(self, state: ThreadState, landings: Landings) -> SignalFrame:
        """The frame from which the kernel restores ``state``.

        Raises:
            UnsupportedState: the vector registers are in streaming mode, or too long.
        """
        registers = _REGISTERS.unpack(state.registers)
        content = _FRAME.pack(0, 0, *_NO_STACK, state.signal_mask, 0, *registers)
        content += _records(state)
        address = (registers[_SP] - len(content)) & ~15
        return SignalFrame(address, address, content)

    def to_call(
        self, state: ThreadState, frame: SignalFrame, landings: Landings, call: Call
    ) -> bytes:
        """Registers with which a function is entered that returns into the frame."""
        registers = list(_REGISTERS.unpack(state.registers))
        for number, value in enumerate(call.arguments):
            registers[number] = value & _MASK
        return _run(registers, call.function, frame, landings)

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
        for register, value in enumerate(arguments):
            registers[register] = value & _MASK
        registers[_X8] = number
        return _run(registers, landings.system_call, frame, landings)

    def to_frame(self, registers: bytes, frame: SignalFrame, landings: Landings) -> bytes:
        """Registers with which the frame is taken at once."""
        return _run(list(_REGISTERS.unpack(registers)), landings.restorer, frame, landings)

    def skip_system_call(self, thread: int) -> None:
        """Let a thread that stands before a system call not make it."""
        ptrace.write_registers(thread, NT_ARM_SYSTEM_CALL, struct.pack("<i", -1))

    def waits_for_lock(self, registers: bytes) -> bool:
        """Whether a thread that stands before a system call is about to wait on a futex."""
        values = _REGISTERS.unpack(registers)
        return values[_X8] == _FUTEX and values[1] & FUTEX_COMMAND in FUTEX_WAITS

    def result(self, registers: bytes) -> int:
        """Signed result of a system call or a function."""
        value = int(_REGISTERS.unpack(registers)[0])
        return value - (1 << 64) if value >> 63 else value

    def instruction(self, registers: bytes) -> int:
        """Address of the instruction that comes next."""
        return int(_REGISTERS.unpack(registers)[_PC])

    def takes_frame(self, registers: bytes, frame: SignalFrame) -> bool:
        """Whether a thread that stands before a system call is about to return by this frame."""
        values = _REGISTERS.unpack(registers)
        return (values[_X8], values[_SP]) == (_RT_SIGRETURN, frame.stack_pointer)


def _run(registers: list[int], start: int, frame: SignalFrame, landings: Landings) -> bytes:
    registers[_X30] = landings.restorer
    registers[_SP] = frame.stack_pointer
    registers[_PC] = start
    registers[_PSTATE] &= ~_STATE_OFF
    return _REGISTERS.pack(*registers)


def _records(state: ThreadState) -> bytes:
    vectors = state.vectors.get(NT_PRFPREG, b"")
    if len(vectors) < _FPSIMD_BYTES:
        raise UnsupportedState("its vector registers cannot be read")
    fpsr_and_fpcr = vectors[_VREGS_BYTES : _VREGS_BYTES + 8]
    records = _RECORD.pack(_FPSIMD_MAGIC, _FPSIMD_BYTES) + fpsr_and_fpcr + vectors[:_VREGS_BYTES]
    records += _sve_record(state.vectors.get(NT_ARM_SVE))
    if len(records) + _RECORD.size > _RECORDS_BYTES:
        raise UnsupportedState("its vector registers are too long")
    return records.ljust(_RECORDS_BYTES, b"\0")


def _sve_record(state: bytes | None) -> bytes:
    """The scalable registers, where the thread uses more of them than the first 128 bits."""
    if state is None:
        return b""
    if len(state) <= _SVE_HEADER.size:
        raise UnsupportedState("its vector registers are in streaming mode")
    _, _, length, _, flags, _ = _SVE_HEADER.unpack_from(state)
    if not flags & _SVE_IN_USE:
        return b""
    # 32 vectors, 16 predicates and the first-fault register of an eighth of their length.
    content = state[_SVE_HEADER.size :][: 32 * length + 17 * length // 8]
    size = (16 + len(content) + 15) & ~15
    return (_RECORD.pack(_SVE_MAGIC, size) + struct.pack("<HHHH", length, 0, 0, 0) + content).ljust(
        size, b"\0"
    )
