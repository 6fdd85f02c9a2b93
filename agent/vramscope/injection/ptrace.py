"""ptrace(2) by ctypes: only the requests that leave a process able to run on by itself.

PTRACE_SINGLESTEP and breakpoints are missing on purpose: if the tracer dies, their SIGTRAP kills
the process. A stop at a system call is harmless then, given PTRACE_O_TRACESYSGOOD: the kernel
wants to send what it reads as signal 133, and there is none (kernel/signal.c, valid_signal).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

NT_PRSTATUS: Final = 1
"""Register set: the general registers."""

_CONT, _DETACH, _SYSCALL = 7, 17, 24
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_SEIZE, _INTERRUPT = 0x4206, 0x4207
_GETSIGMASK, _SETSIGMASK = 0x420A, 0x420B
_GET_RSEQ_CONFIGURATION: Final = 0x420F
_O_TRACESYSGOOD: Final = 1
_EVENT_STOP: Final = 128
_SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
_WALL: Final = 0x40000000
_LARGEST_REGSET: Final = 64 << 10
_SIGNAL_SET_BYTES: Final = 8
# A stop takes some 10 us to come. Sleeping costs at least 50 us, so it is only for late ones.
_SPIN_S: Final = 0.002
_NAP_S: Final = 0.0002


class ThreadGone(Exception):
    """The traced thread has ended or has become another program."""


@dataclass(frozen=True)
class Stop:
    """Why a thread stands.

    Attributes:
        kind: ``event``: asked for, or by job control; ``syscall``: before or after a system call;
            ``signal``: about to get one.
        signal: number of the signal, for ``signal``.
    """

    kind: Literal["event", "syscall", "signal"]
    signal: int = 0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def seize(thread: int) -> None:
    """Become the tracer of a thread, which runs on.

    Raises:
        OSError: EPERM (not allowed, or traced already), ESRCH.
    """
    _request(_SEIZE, thread, 0, _O_TRACESYSGOOD)


def interrupt(thread: int) -> None:
    """Ask a thread to stop, also one that has stopped for another reason.

    Raises:
        ThreadGone: it has ended.
    """
    _traced_request(_INTERRUPT, thread)


def resume(thread: int, *, deliver: int = 0, to_system_call: bool = False) -> None:
    """Let a stopped thread run, on request up to the next border of a system call.

    Raises:
        ThreadGone: it has ended.
    """
    _traced_request(_SYSCALL if to_system_call else _CONT, thread, 0, deliver)


def detach(thread: int, *, deliver: int = 0) -> None:
    """Let a stopped thread go.

    Raises:
        ThreadGone: it has ended.
    """
    _traced_request(_DETACH, thread, 0, deliver)


def read_registers(thread: int, regset: int) -> bytes | None:
    """A register set of a stopped thread; None where the processor has none of that kind.

    Raises:
        ThreadGone: it has ended.
    """
    buffer = ctypes.create_string_buffer(_LARGEST_REGSET)
    vector = _Vector(ctypes.addressof(buffer), _LARGEST_REGSET)
    try:
        _traced_request(_GETREGSET, thread, regset, ctypes.addressof(vector))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENODEV):
            return None
        raise
    return ctypes.string_at(buffer, vector.length)


def write_registers(thread: int, regset: int, content: bytes) -> None:
    """Set a register set of a stopped thread, all of it at once.

    Raises:
        ThreadGone: it has ended.
    """
    buffer = ctypes.create_string_buffer(content, len(content))
    vector = _Vector(ctypes.addressof(buffer), len(content))
    _traced_request(_SETREGSET, thread, regset, ctypes.addressof(vector))


def read_signal_mask(thread: int) -> int:
    """Blocked signals of a stopped thread; bit 0 stands for signal 1.

    Raises:
        ThreadGone: it has ended.
    """
    mask = ctypes.c_uint64()
    _traced_request(_GETSIGMASK, thread, _SIGNAL_SET_BYTES, ctypes.addressof(mask))
    return int(mask.value)


def write_signal_mask(thread: int, mask: int) -> None:
    """Set the blocked signals of a stopped thread.

    Raises:
        ThreadGone: it has ended.
    """
    content = ctypes.c_uint64(mask)
    _traced_request(_SETSIGMASK, thread, _SIGNAL_SET_BYTES, ctypes.addressof(content))


def rseq_area(thread: int) -> int:
    """Address of a stopped thread's area for restartable sequences (rseq(2)), 0 if it has none.

    Raises:
        ThreadGone: it has ended.
    """
    # Address, then size, signature, flags.
    configuration = (ctypes.c_uint64 * 3)()
    try:
        _traced_request(
            _GET_RSEQ_CONFIGURATION,
            thread,
            ctypes.sizeof(configuration),
            ctypes.addressof(configuration),
        )
    except OSError:
        return 0  # Before Linux 5.13, or a kernel without them.
    return int(configuration[0])


def wait_for_stop(thread: int, timeout_s: float) -> Stop | None:
    """The stop of a thread that was let run; None if it does not come in time.

    The stop is looked at, not taken out (WNOWAIT): if this process dies then, the kernel still
    delivers the signal at which the thread stands.

    Raises:
        ThreadGone: it has ended.
    """
    options = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG | _WALL
    start_s = time.perf_counter()
    while True:
        try:
            found = os.waitid(os.P_PID, thread, options)
        except ChildProcessError as error:
            raise ThreadGone(f"waiting for its stop: {error}") from error
        if found is not None:
            return _classify(found.si_code, found.si_status)
        waited_s = time.perf_counter() - start_s
        if waited_s > timeout_s:
            return None
        if waited_s < _SPIN_S:
            os.sched_yield()
        else:
            time.sleep(_NAP_S)


def _classify(code: int, status: int) -> Stop:
    if code not in (os.CLD_TRAPPED, os.CLD_STOPPED):
        raise ThreadGone(f"it ended instead of stopping (code {code}, status {status})")
    if status >> 8 == _EVENT_STOP:
        return Stop("event")
    if status == _SYSCALL_STOP:
        return Stop("syscall")
    return Stop("signal", status & 0xFF)


@functools.cache
def _libc_ptrace() -> Callable[..., int]:
    function: Any = ctypes.CDLL(None, use_errno=True).ptrace
    function.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    function.restype = ctypes.c_long
    return function  # type: ignore[no-any-return]


def _request(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _libc_ptrace()(request, thread, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _traced_request(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    try:
        _request(request, thread, address, data)
    except ProcessLookupError as error:
        raise ThreadGone(f"ptrace request {request:#x}: {error}") from error
