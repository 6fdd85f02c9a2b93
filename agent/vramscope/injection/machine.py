"""What the two kinds of processor have in common: registers, signal frames, landing places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol


@dataclass(frozen=True)
class ThreadState:
    """A stopped thread, completely: what must be as before when it runs on.

    Attributes:
        registers: the general registers (NT_PRSTATUS).
        vectors: further register sets by number.
        signal_mask: blocked signals; bit 0 stands for signal 1.
    """

    registers: bytes
    vectors: dict[int, bytes] = field(default_factory=dict[int, bytes])
    signal_mask: int = 0


@dataclass(frozen=True)
class Landings:
    """Instructions in the process that are jumped to; none of them is put there.

    Attributes:
        restorer: makes the system call rt_sigreturn.
        system_call: makes any system call, then returns.
        store_result: writes the result of a function to memory, then returns; 0 if there is none
            (or none needed).
    """

    restorer: int
    system_call: int
    store_result: int = 0


@dataclass(frozen=True)
class SignalFrame:
    """What the kernel would have put on the stack for a signal handler, made by hand.

    Attributes:
        address: where ``content`` belongs.
        stack_pointer: as rt_sigreturn wants it.
        content: bytes.
    """

    address: int
    stack_pointer: int
    content: bytes


@dataclass(frozen=True)
class Call:
    """A function to run in the process.

    Attributes:
        function: address.
        arguments: up to four integers or addresses.
        result: address of 8 writable bytes for the result, 0 if nobody wants it.
        waits_at_once: whether nothing has changed yet when it waits for a lock, so that it can be
            called off there.
    """

    function: int
    arguments: Sequence[int]
    result: int = 0
    waits_at_once: bool = True


class Machine(Protocol):
    """A kind of processor. All registers are bytes as in NT_PRSTATUS."""

    name: str
    vector_sets: Sequence[int]
    """Register sets to be saved; those that the processor lacks are left out."""
    result_survives: bool
    """Whether the restorer leaves a function's result in its register."""
    restorer_code: Sequence[bytes]
    system_call_code: Sequence[bytes]
    store_result_code: Sequence[bytes]
    """Needed where the result does not survive."""
    page_places: Sequence[int]
    """Addresses for memory of our own, outside of what kernel, loaders and CUDA hand out."""
    number_of_mmap: int
    number_of_memfd_create: int
    number_of_openat: int
    number_of_close: int

    def check(self, thread: int) -> None:
        """Refuse a stopped thread that cannot return to a frame of ours.

        Raises:
            UnsupportedState: the processor guards its return addresses.
        """
        ...

    def frame(self, state: ThreadState, landings: Landings) -> SignalFrame:
        """The frame from which the kernel restores ``state``.

        Raises:
            UnsupportedState: the thread uses registers that no frame of ours can hold.
        """
        ...

    def to_call(
        self, state: ThreadState, frame: SignalFrame, landings: Landings, call: Call
    ) -> bytes:
        """Registers with which a function is entered that returns into the frame."""
        ...

    def to_system_call(
        self,
        state: ThreadState,
        frame: SignalFrame,
        landings: Landings,
        number: int,
        arguments: Sequence[int],
    ) -> bytes:
        """Registers with which a system call is made that returns into the frame."""
        ...

    def to_frame(self, registers: bytes, frame: SignalFrame, landings: Landings) -> bytes:
        """Registers with which the frame is taken at once; a system call at hand is not made."""
        ...

    def skip_system_call(self, thread: int) -> None:
        """Let a thread that stands before a system call not make it (where registers don't say)."""
        ...

    def waits_for_lock(self, registers: bytes) -> bool:
        """Whether a thread that stands before a system call is about to wait on a futex."""
        ...

    def result(self, registers: bytes) -> int:
        """Signed result of a system call, or of a function where no landing stores it."""
        ...

    def instruction(self, registers: bytes) -> int:
        """Address of the instruction that comes next."""
        ...

    def takes_frame(self, registers: bytes, frame: SignalFrame) -> bool:
        """Whether a thread that stands before a system call is about to return by this frame."""
        ...


FUTEX_COMMAND: Final = 0x7F
"""Bits of futex(2)'s second argument that say what to do."""

FUTEX_WAITS: Final = (0, 6, 9, 11, 13)
"""FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2."""


class UnsupportedState(Exception):
    """The thread uses registers that cannot be saved and restored by a signal frame."""
