"""One block: a piece of a segment, handed out or free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vramscope_analysis.allocator.pool import BlockPool
    from vramscope_analysis.allocator.segment import Segment

NO_STREAMS: Final[frozenset[int]] = frozenset()


class Block:
    """A contiguous piece of a segment (``struct Block``), linked to its neighbours by address."""

    __slots__ = (
        "address",
        "allocated",
        "capture_uses",
        "free_key",
        "gc_count_base",
        "mapped",
        "next",
        "pending",
        "pool",
        "prev",
        "registration",
        "requested_bytes",
        "segment",
        "size_bytes",
        "stream",
        "stream_uses",
    )

    def __init__(
        self, address: int, size_bytes: int, stream: int, pool: BlockPool, segment: Segment
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.stream = stream
        self.pool = pool
        self.segment = segment
        self.requested_bytes = 0
        self.allocated = False
        # Freed, but another stream may still use it: it counts as active until that is over.
        self.pending = False
        # Whether memory lies behind the addresses. Always so, except in an expandable segment.
        self.mapped = True
        self.stream_uses = NO_STREAMS
        self.capture_uses = NO_STREAMS  # of these, recorded during a capture
        self.prev: Block | None = None
        self.next: Block | None = None
        # Place among free blocks of equal size, where that is not only the address.
        numbers = pool.block_numbers
        self.registration = segment.registration if numbers is None else next(numbers)
        self.free_key = 0
        self.gc_count_base = 0

    def __repr__(self) -> str:
        return f"Block({self.address:#x}, {self.size_bytes} B, {self.state})"

    @property
    def is_split(self) -> bool:
        """Whether the segment holds other blocks beside this one (``is_split``)."""
        return self.prev is not None or self.next is not None

    @property
    def is_available(self) -> bool:
        """Whether nobody uses it, mapped or not (``allocatable`` in ``find_expandable_block``)."""
        return not self.allocated and not self.pending

    @property
    def state(self) -> str:
        """State as a snapshot writes it; a snapshot shows no unmapped blocks."""
        if self.allocated:
            return "active_allocated"
        if self.pending:
            return "active_pending_free"
        return "inactive" if self.mapped else "unmapped"
