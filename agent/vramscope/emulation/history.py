"""The history that ``torch.cuda.memory._record_memory_history`` switches on.

Everything is called under the lock of the mirror, but for ``gather_at_free``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from vramscope.emulation.stacks import Stack, Stacks

PoolId: TypeAlias = tuple[int, int]
Entry: TypeAlias = tuple[str, int, int, int, int, PoolId, Stack | None, str]
"""Action, address, bytes, stream, time in us, pool, stack and metadata of one trace entry."""
Annotation: TypeAlias = tuple[str, str, int]
"""Stage, name and time in us."""

MAX_ENTRIES: Final = 1 << 22
"""Entries kept, however many the job asks for: PyTorch's default is to fill all memory."""

_FREES: Final = frozenset({"free_requested", "free_completed"})
_RELEASED: Final = frozenset({"segment_free", "segment_unmap"})


class Context(IntEnum):
    """When stacks are taken, and where they show (``RecordContext``)."""

    NEVER = 0
    STATE = 1
    """At each allocation; shown on live blocks."""
    ALLOC = 2
    """Also in the trace entries; a free shows the stack of its allocation."""
    ALL = 3
    """Also taken at each free, and when the cache is emptied."""


@dataclass(frozen=True)
class HistoryRequest:
    """How to record.

    Args:
        context: when stacks are taken.
        max_entries: size of the ring; ``MAX_ENTRIES`` at most.
        clear: forget what is recorded already.
        skip_actions: actions that are not written down.
    """

    context: Context
    max_entries: int
    clear: bool = False
    skip_actions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recorded:
    """What a history held at one moment."""

    entries: tuple[Entry, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    block_stacks: Mapping[int, Stack] = field(default_factory=dict[int, Stack])
    """By the address of the live block."""
    segment_stacks: Mapping[int, Stack] = field(default_factory=dict[int, Stack])
    """By the address of the segment, or of the pages that were mapped."""


class _Metadata(threading.local):
    text = ""


class History:
    """A ring of trace entries and annotations, and the stacks of the live blocks."""

    def __init__(self) -> None:
        self.is_recording = False
        self.metadata = _Metadata()
        """Words of the job for the allocations of a thread (``_set_memory_metadata``)."""
        self.stack_of_free: Stack | None = None
        """Where the block that is freed next died, if that is known."""
        self.is_asked = False
        """Whether what happens now was asked for, and is not part of an allocation."""
        self._context = Context.NEVER
        self._skipped: frozenset[str] = frozenset()
        self._entries: deque[Entry] = deque(maxlen=1)
        self._annotations: deque[Annotation] = deque(maxlen=1)
        self._stacks = Stacks()
        self._block_stacks: dict[int, Stack] = {}
        self._segment_stacks: dict[int, Stack] = {}
        self._open_annotations: list[str] = []

    def start(self, request: HistoryRequest) -> None:
        """Record from now on (``recordHistory``); what is recorded stays, unless asked to go."""
        context = request.context
        if request.clear:
            self._forget_entries()
        size = max(1, min(request.max_entries, MAX_ENTRIES))
        self._entries = deque(self._entries, maxlen=size)
        self._annotations = deque(self._annotations, maxlen=size)
        self._context = context
        self._skipped = frozenset(request.skip_actions)
        self.is_recording = True

    def stop(self) -> None:
        """Record nothing more and forget everything."""
        self.is_recording = False
        self._context = Context.NEVER
        self._forget_entries()
        self._block_stacks.clear()
        self._segment_stacks.clear()

    def gather_at_free(self) -> Stack | None:
        """The stack of a tensor's death, if stacks of frees are wanted. On any thread."""
        return self._stacks.gather() if self._context is Context.ALL else None

    def event(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: PoolId
    ) -> None:
        """Take one event of the allocator. An ``EventCallback``."""
        if not self.is_recording:
            return
        stack = self._stack_of(action, address)
        if action in self._skipped:
            return
        if self._context < Context.ALLOC:
            stack = None
        time_us = time.time_ns() // 1000
        text = self.metadata.text
        self._entries.append((action, address, size_bytes, stream, time_us, pool_id, stack, text))

    def _stack_of(self, action: str, address: int) -> Stack | None:
        """The stack of an event: its own, or else that of what it ends."""
        stack: Stack | None = None
        if action == "alloc":
            if self._context:
                stack = self._block_stacks[address] = self._stacks.gather()
        elif action in _FREES:
            stack = self.stack_of_free
            if stack is None:
                stack = self._block_stacks.get(address)
            if action == "free_completed":
                self._block_stacks.pop(address, None)
        elif action in _RELEASED:
            stack = self._segment_stacks.pop(address, None)
            if self._context and not (self.is_asked and self._context is not Context.ALL):
                stack = self._stacks.gather()
        elif action != "snapshot" and self._context:
            stack = self._stacks.gather()
            if action != "oom":
                self._segment_stacks[address] = stack
        return stack

    def annotate(self, name: str | None) -> None:
        """A ``record_function`` scope of the job begins; ``None``: the innermost one ends."""
        if name is not None:
            self._open_annotations.append(name)
            stage = "START"
        elif self._open_annotations:
            name = self._open_annotations.pop()
            stage = "END"
        else:
            return  # it began before the recording did
        self._annotations.append((stage, name, time.time_ns() // 1000))

    def recorded(self, *, include_traces: bool = True) -> Recorded:
        """A copy of what is recorded now; the stacks of what is live alone, without traces."""
        return Recorded(
            tuple(self._entries) if include_traces else (),
            tuple(self._annotations) if include_traces else (),
            dict(self._block_stacks),
            dict(self._segment_stacks),
        )

    def _forget_entries(self) -> None:
        self._entries.clear()
        self._annotations.clear()
        self._open_annotations.clear()
