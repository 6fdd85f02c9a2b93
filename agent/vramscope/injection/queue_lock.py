"""The lock of Python 3.13's queue of pending calls: a byte that is looked at before a call.

Up to 3.12 a thread that meets this lock just waits, and can be called off. From 3.13 on it gives up
the GIL first, which must not happen in the middle of anything. Only the main thread of the process
can hold the lock for long, namely when it was stopped while it did; so that is looked at, and the
process is let go for a moment.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Final

from vramscope.injection.elf import Symbol
from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.memory import TargetMemory

FIRST_WITH_MUTEX: Final = (3, 13)

# struct _pending_calls of 3.13 (pycore_ceval_state.h): handling_thread, mutex, npending, max,
# maxloop, 300 calls of 24 bytes, first, next. The queue for the main thread is told from the
# others by its limits: 32 calls at most, all of them at once.
_HEAD: Final = struct.Struct("<QB3siii")
_CALLS, _CALL_BYTES = 300, 24
_TAIL: Final = struct.Struct("<ii")
_QUEUE_BYTES: Final = _HEAD.size + _CALLS * _CALL_BYTES + _TAIL.size
_MOST_WAITING: Final = 32
_LIMITS: Final = struct.pack("<ii", _MOST_WAITING, 0)
_LIMITS_OFFSET: Final = 16
_MUTEX_OFFSET: Final = 8
_MUTEX_BITS: Final = 3
_NO_CALL: Final = bytes(_CALL_BYTES)
_LOWEST_POINTER: Final = 1 << 16
_LARGEST_RUNTIME: Final = 8 << 20
# The process goes on using the queue while it is read, so that it can look like none.
_ATTEMPTS: Final = 100
_PAUSE_S: Final = 0.002


def find_queue_lock(memory: TargetMemory, interpreter: Interpreter) -> int:
    """Address of the lock's byte; 0 for a Python that has none of this kind.

    Raises:
        InjectionError: it is not found (``failed``): without it a call might never return.
        OSError: the process has ended.
    """
    if interpreter.version < FIRST_WITH_MUTEX:
        return 0
    runtime = interpreter.symbols.get("_PyRuntime", Symbol(0, 0))
    for _ in range(_ATTEMPTS if runtime.size else 0):
        content = memory.read(runtime.address, min(runtime.size, _LARGEST_RUNTIME))
        queues = list(_queues(content))
        if len(queues) == 1:
            return runtime.address + queues[0] + _MUTEX_OFFSET
        time.sleep(_PAUSE_S)
    raise InjectionError("the lock of its queue of pending calls is not found", "failed")


def is_locked(memory: TargetMemory, lock: int) -> bool:
    """Whether somebody holds the lock at this address (bit 0 of a PyMutex)."""
    return lock != 0 and bool(memory.read(lock, 1)[0] & 1)


def _queues(content: bytes) -> Iterator[int]:
    """Offsets of all that looks like the queue for the main thread."""
    place = content.find(_LIMITS)
    while place >= 0:
        offset = place - _LIMITS_OFFSET
        if offset >= 0 and offset % 8 == 0 and _is_queue(content[offset : offset + _QUEUE_BYTES]):
            yield offset
        place = content.find(_LIMITS, place + 1)


def _is_queue(content: bytes) -> bool:
    if len(content) < _QUEUE_BYTES:
        return False
    thread, mutex, padding, waiting, _, _ = _HEAD.unpack_from(content)
    first, following = _TAIL.unpack_from(content, _QUEUE_BYTES - _TAIL.size)
    if 0 < thread < _LOWEST_POINTER or mutex > _MUTEX_BITS or any(padding):
        return False
    if not (0 <= waiting <= _MOST_WAITING and 0 <= first < _CALLS and 0 <= following < _CALLS):
        return False
    # A call that is taken out leaves zeros, so that what is in use lies between first and next.
    used = {
        number
        for number in range(_CALLS)
        if content[_HEAD.size + number * _CALL_BYTES :][:_CALL_BYTES] != _NO_CALL
    }
    between = {(first + number) % _CALLS for number in range((following - first) % _CALLS)}
    return used == between and len(between) == waiting
