"""The one function of ours that PyTorch calls when it runs out of memory.

PyTorch has no way to take an observer off again. So one function is left there for the life of
the process, and what it calls can be switched: without an agent, and in a forked child, it does
nothing. It must not let anything of ours through: PyTorch would raise that in place of its own
error. It is called on the thread that asked for memory, which may be one of autograd's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from vramscope.guard import guarded

Take = Callable[[int, int, int, int], None]
"""Takes ``(device, bytes asked of the driver, bytes allowed, bytes free on the device)``."""

ATTACH_NAME: Final = "_cuda_attach_out_of_memory_observer"

_take: Take | None = None
_pid = -1
_is_attached = False
_thread = threading.local()


def attach(c_module: Any, *, emulated: bool) -> bool:
    """Let PyTorch call, from now on; on the job's thread, once it has set CUDA up itself.

    Args:
        c_module: ``torch._C``, or what stands for it.
        emulated: a device that begins anew with each emulation, with no observer.

    Returns:
        Whether PyTorch calls.

    Raises:
        RuntimeError: this allocator has no observers.
    """
    global _is_attached
    observe: Callable[[Take], object] | None = getattr(c_module, ATTACH_NAME, None)
    if observe is None:
        return False
    if emulated:
        observe(_out_of_memory)
    elif not _is_attached:
        observe(_out_of_memory)
        _is_attached = True
    return True


def is_attached() -> bool:
    """Whether PyTorch calls on a device that is there, since an agent that was here before."""
    return _is_attached


def switch_on(take: Take) -> None:
    """Call ``take`` from now on."""
    global _take, _pid
    _pid = os.getpid()
    _take = take


def switch_off(take: Take | None = None) -> None:
    """Call nobody any more; if ``take`` is given, only if that one was called."""
    global _take
    if take is None or _take == take:
        _take = None


def _out_of_memory(device: int, segment_bytes: int, allowed_bytes: int, free_bytes: int) -> None:
    take = _take
    if take is None or _pid != os.getpid() or sys.is_finalizing():
        return
    if getattr(_thread, "is_inside", False):
        return  # what we do ran out of memory itself
    _thread.is_inside = True
    try:
        with guarded("out of memory"):
            take(device, segment_bytes, allowed_bytes, free_bytes)
    finally:
        _thread.is_inside = False
