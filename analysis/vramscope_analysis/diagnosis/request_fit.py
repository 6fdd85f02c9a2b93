"""Whether a request would find a place now, by the rules of PyTorch's allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.rounding import (
    MIN_LARGE_ALLOC_BYTES,
    ROUND_LARGE_BYTES,
    SMALL_BYTES,
    round_size,
    segment_size,
)
from vramscope_analysis.allocator.settings import UNLIMITED
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.settings_advice import read_settings
from vramscope_analysis.evidence.memory_layout import MemoryLayout, PoolLayout
from vramscope_analysis.evidence.run_evidence import RankEvidence

Place = Literal["block", "device", "flush", "nowhere"]

LARGE: Final = "large"


@dataclass(frozen=True)
class RequestFit:
    """What one stream could have in one piece.

    Args:
        pool: its large pool; None where it has none yet.
        settings: of the allocator.
        room_bytes: what the device would still give the process.
        returnable_bytes: free in all pools, and given back before a request fails.
    """

    pool: PoolLayout | None
    settings: AllocatorSettings
    room_bytes: int
    returnable_bytes: int

    @property
    def is_expandable(self) -> bool:
        """Whether its segments grow in place."""
        return self.settings.expandable_segments or (
            self.pool is not None and self.pool.is_expandable
        )

    @property
    def free_bytes(self) -> int:
        """Free in blocks of the pool."""
        return 0 if self.pool is None else self.pool.free_bytes

    @property
    def largest_free_bytes(self) -> int:
        """The largest free block."""
        return 0 if self.pool is None else self.pool.largest_bytes

    @property
    def largest_bytes(self) -> int:
        """The largest request that is served without a flush."""
        if self.is_expandable:
            page = self.settings.large_segment_bytes
            return max(self.largest_free_bytes, self.room_bytes // page * page)
        # A smaller request than that takes a segment of 20 MiB, which there is then no room for.
        has_room = self.room_bytes >= MIN_LARGE_ALLOC_BYTES
        new = self.room_bytes // ROUND_LARGE_BYTES * ROUND_LARGE_BYTES if has_room else 0
        return max(self.largest_free_bytes, new)

    def place_of(self, request_bytes: int, *, at_best: bool = False) -> Place:
        """Where a request above 1 MiB would be served.

        Args:
            request_bytes: as the job asks.
            at_best: as if all that does not stay were free already.
        """
        size = round_size(request_bytes, self.settings)
        free = self.largest_free_bytes
        if self.pool is not None and at_best:
            free = self.pool.between_bytes
        # What is free may lie at the end that grows: then less has to be taken.
        needs = size - free if self.is_expandable else segment_size(size, self.settings)
        if free >= size:
            return "block"
        if needs <= self.room_bytes:
            return "device"
        return "flush" if needs <= self.room_bytes + self.returnable_bytes else "nowhere"


def request_fit(rank: RankEvidence, stream: int | None = None) -> RequestFit | None:
    """What a stream could have now; None where the map, the room or the settings are not known.

    Args:
        rank: the process.
        stream: its handle; None is the stream with most in use.
    """
    layout, settings = rank.layout, read_settings(rank.settings)
    if layout is None or settings is None or not layout.is_exact:
        return None
    if settings.max_split_size_bytes != UNLIMITED:
        return None  # whether a large block serves a request depends on more than its size
    room = room_bytes(rank, layout)
    stream = layout.main_stream if stream is None else stream
    if room is None or stream is None:
        return None
    return RequestFit(layout.pool_of(LARGE, stream), settings, room, layout.returnable_bytes)


def room_bytes(rank: RankEvidence, layout: MemoryLayout) -> int | None:
    """What the process could still take from the device; None is not known."""
    limit = layout.limit_bytes
    if limit is None:
        limit = allocator_limit(rank)
    rooms = [] if limit is None else [limit - layout.reserved_bytes]
    if layout.device_free_bytes is not None:
        rooms.append(layout.device_free_bytes)
    return max(min(rooms), 0) if rooms else None


def is_large(request_bytes: int) -> bool:
    """Whether it is served by the large pool, which is the one that can be in pieces for long."""
    return request_bytes > SMALL_BYTES
