"""The lock of the queue of pending calls up to Python 3.12: a semaphore that is looked at first.

A main thread that is stopped with this lock in its hands would wait for itself. That is noticed and
called off, but only by one who lives; so it is not even tried where the lock is seen to be held.

Nothing says where the lock is. So every semaphore is looked at that could be the one by what lies
around it. There are a handful, all but never held, and one too many costs no more than another try.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator
from typing import Final

from vramscope.injection.interpreter import Interpreter
from vramscope.injection.memory import TargetMemory

_FIRST_WITHOUT: Final = (3, 13)
_FIRST_WITH_STATIC_INTERPRETER: Final = (3, 11)
_LARGEST_RUNTIME: Final = 8 << 20
_INTERPRETER_BYTES: Final = 16 << 10

# struct _pending_calls (pycore_interp.h, pycore_ceval_state.h), in words from the lock on: the
# lock, calls_to_do and async_exc, 32 calls of two words, first and last.
_FLAGS_AT, _ENDS_AT, _WORDS = 1, 66, 67
_FLAGS: Final = 1 << 32 | 1
_ENDS: Final = 31 << 32 | 31
# A lock is a block of malloc.
_POINTER_ALIGNMENT: Final = 16
_LOWEST_POINTER: Final = 1 << 16
_POINTER_BITS: Final = 48

# Value, waiting threads, whether shared (sem_t of glibc and musl).
_SEMAPHORE: Final = struct.Struct("<III4x")
# Sizes that glibc's malloc notes in front of a block of 32 bytes, without the flags.
_BLOCK_SIZES: Final = (0x30, 0x40)
_BLOCK_FLAGS: Final = 7
_LOOKS, _PAUSE_S = 25, 0.002


class QueueSemaphores:
    """Semaphores of a process one of which guards the queue; none from Python 3.13 on.

    Args:
        memory: of the process.
        interpreter: of the process.

    Raises:
        OSError: the process has ended.
    """

    def __init__(self, memory: TargetMemory, interpreter: Interpreter) -> None:
        self._memory = memory
        candidates = set(_candidates(memory, interpreter))
        held = {address for address in candidates if _value(memory, address) is not None}
        in_blocks = {address for address in held if _is_block_of_lock(memory, address)}
        held = in_blocks or held
        self.addresses: set[int] = set()
        for _ in range(_LOOKS):
            free = {address for address in held if _value(memory, address) == 1}
            self.addresses |= free
            held -= free
            if not held:
                break
            # Its holder may have lost the processor; what stays as it is, is something else.
            time.sleep(_PAUSE_S)

    def are_held(self) -> bool:
        """Whether one of them is held now."""
        return any(_value(self._memory, address) == 0 for address in self.addresses)


def _candidates(memory: TargetMemory, interpreter: Interpreter) -> Iterator[int]:
    """What a queue of pending calls could name as its lock."""
    runtime = interpreter.symbols.get("_PyRuntime")
    if interpreter.version >= _FIRST_WITHOUT or runtime is None:
        return
    words = _words(memory.read(runtime.address, min(runtime.size, _LARGEST_RUNTIME)))
    yield from _locks_in(words)
    if interpreter.version >= _FIRST_WITH_STATIC_INTERPRETER:
        return
    # The first and the main interpreter stand side by side, and are one and the same.
    for first, main in itertools.pairwise(words):
        if first == main and _is_block(first):
            try:
                yield from _locks_in(_words(memory.read(first, _INTERPRETER_BYTES)))
            except OSError:
                continue


def _locks_in(words: tuple[int, ...]) -> Iterator[int]:
    for number in range(len(words) - _WORDS + 1):
        if (
            _is_block(words[number])
            and not words[number + _FLAGS_AT] & ~_FLAGS
            and not words[number + _ENDS_AT] & ~_ENDS
        ):
            yield words[number]


def _is_block_of_lock(memory: TargetMemory, address: int) -> bool:
    (size,) = _words(memory.read(address - 8, 8))
    return size & ~_BLOCK_FLAGS in _BLOCK_SIZES


def _is_block(word: int) -> bool:
    return not word % _POINTER_ALIGNMENT and _LOWEST_POINTER <= word < 1 << _POINTER_BITS


def _words(content: bytes) -> tuple[int, ...]:
    count = len(content) // 8
    return struct.unpack_from(f"<{count}Q", content)


def _value(memory: TargetMemory, address: int) -> int | None:
    """Of a semaphore as a lock uses it, 1 for free and 0 for held; None if it is none."""
    try:
        value, _, shared = _SEMAPHORE.unpack(memory.read(address, _SEMAPHORE.size))
    except OSError:
        return None
    return int(value) if value <= 1 and not shared else None
