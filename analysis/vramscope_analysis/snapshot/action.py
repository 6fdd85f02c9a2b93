"""What the allocator did, and what state a block is in: PyTorch's words, numbered."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """The ``action`` of a trace entry (``TraceEntry::Action``); ``OTHER`` is any later one."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    SNAPSHOT = 7
    OOM = 8
    ANNOTATE = 9
    OTHER = 255

    @property
    def word(self) -> str:
        """The word in a snapshot: ``"alloc"``."""
        return self.name.lower()


class BlockState(IntEnum):
    """The ``state`` of a block (``BlockInfo``); ``OTHER`` is any later one."""

    INACTIVE = 0
    ACTIVE_ALLOCATED = 1
    ACTIVE_PENDING_FREE = 2
    OTHER = 255

    @property
    def word(self) -> str:
        """The word in a snapshot: ``"active_allocated"``."""
        return self.name.lower()
