"""Pools of segments that were given back within a recording: what no segment of the end shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vramscope_analysis.allocator import DEFAULT_POOL_ID, PoolId
from vramscope_analysis.allocator.rounding import SMALL_BYTES, SMALL_SEGMENT_BYTES
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.undo import ALLOC
from vramscope_analysis.replay.pools import pool_id
from vramscope_analysis.replay.recording import Recording


class UnknownPools:
    """Says of which pool a segment was, as well as the recording tells.

    Entries name their private pool from torch 2.12 on. Before, a segment that is gone is taken to
    belong to the default pool, and so are its entries (``Pools``). Small segments have a size of
    their own; of pages, it shows in the blocks that were placed there. ``guesses`` counts what no
    entry and no segment decides.

    Args:
        recording: its segments and entries.
        position: entry before which the segments were held.
    """

    def __init__(self, recording: Recording, position: int) -> None:
        self._recording = recording
        self.guesses = 0
        self._has_private = any(pool_id(one) != DEFAULT_POOL_ID for one in recording.segments)
        events = recording.events
        allocs = np.flatnonzero(events.actions[position:] == ALLOC) + position
        self._allocs = allocs[np.argsort(events.addresses[allocs], kind="stable")]
        self._alloc_addresses = events.addresses[self._allocs]

    def resolved(self, held: Sequence[HeldSegment]) -> list[HeldSegment]:
        """The same segments with every pool known, or guessed and counted."""
        return [
            replace(one, pool_id=self._pool_id(one), is_small=self._is_small(one)) for one in held
        ]

    def _pool_id(self, segment: HeldSegment) -> PoolId:
        if segment.pool_id is not None:
            return segment.pool_id
        self.guesses += self._has_private
        return DEFAULT_POOL_ID

    def _is_small(self, segment: HeldSegment) -> bool:
        large_bytes = self._recording.settings.large_segment_bytes
        if segment.is_small is not None:
            return segment.is_small
        if not segment.is_expandable:
            return segment.size_bytes == SMALL_SEGMENT_BYTES != large_bytes
        if segment.size_bytes % large_bytes:
            return True
        edges = np.array((segment.address, segment.end), np.uint64)
        start, end = np.searchsorted(self._alloc_addresses, edges)
        placed = self._allocs[start:end]
        if segment.freed_at is not None:
            placed = placed[placed < segment.freed_at]
        if len(placed):
            return bool(self._recording.events.sizes[placed[0]] <= SMALL_BYTES)
        # Pages that nothing was placed into again. So many small ones at once are rare.
        self.guesses += 1
        return False
