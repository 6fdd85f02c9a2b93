"""The lock of Python 3.13's queue of pending calls: a byte that is looked at before a call.

Up to 3.12 a thread that meets this lock just waits, and can be called off. From 3.13 on it gives up
the GIL first, which must not happen in the middle of anything. Only the main thread of the process
can hold the lock for long, namely when it was stopped while it did; so that is looked at, and the
process is let go for a moment.
"""

from __future__ import annotations

import struct
from typing import Final

from vramscope.injection.interpreter import Interpreter
from vramscope.injection.memory import TargetMemory

FIRST_WITH_MUTEX: Final = (3, 13)

# struct _pending_calls of 3.13 (pycore_ceval_state.h): handling_thread, mutex, npending, max,
# maxloop, 300 calls of 24 bytes, first, next. The queue for the main thread is told from the
# others by its limits: 32 calls at most, all of them at once.
_QUEUE: Final = struct.Struct("<QB3xiii7200xii")
_LIMITS: Final = struct.pack("<ii", 32, 0)
_LIMITS_OFFSET: Final = 16
_CALLS: Final = 300
_MUTEX_OFFSET: Final = 8
_LARGEST_RUNTIME: Final = 8 << 20


def find_queue_lock(memory: TargetMemory, interpreter: Interpreter) -> int:
    """Address of the lock's byte; 0 where there is none of this kind, or it is not found.

    Raises:
        OSError: the process has ended.
    """
    runtime = interpreter.symbols.get("_PyRuntime")
    if interpreter.version < FIRST_WITH_MUTEX or runtime is None:
        return 0
    content = memory.read(runtime.address, min(runtime.size, _LARGEST_RUNTIME))
    place = content.find(_LIMITS)
    while place >= 0:
        if _is_queue(content, place - _LIMITS_OFFSET):
            return runtime.address + place - _LIMITS_OFFSET + _MUTEX_OFFSET
        place = content.find(_LIMITS, place + 1)
    return 0


def is_locked(memory: TargetMemory, lock: int) -> bool:
    """Whether somebody holds the lock at this address (bit 0 of a PyMutex)."""
    return lock != 0 and bool(memory.read(lock, 1)[0] & 1)


def _is_queue(content: bytes, offset: int) -> bool:
    if offset < 0 or offset % 8 or offset + _QUEUE.size > len(content):
        return False
    fields: tuple[int, ...] = _QUEUE.unpack_from(content, offset)
    _, _, waiting, _, _, first, following = fields
    return max(first, following) < _CALLS and (following - first) % _CALLS == waiting
