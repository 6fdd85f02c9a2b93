"""The blocks that were live at one moment of a recording, and how sure their sizes are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from vramscope_analysis.allocator import DEFAULT_POOL_ID
from vramscope_analysis.allocator.rounding import (
    MIN_BLOCK_BYTES,
    ROUND_LARGE_BYTES,
    SMALL_BYTES,
    round_size,
)
from vramscope_analysis.allocator.version_rules import rules_of
from vramscope_analysis.replay.past.best_fit import narrow
from vramscope_analysis.replay.past.held_memory import HeldSegment
from vramscope_analysis.replay.past.uncertain_block import UncertainBlock
from vramscope_analysis.replay.past.undo import ALLOC, Contradictions, Live, Undo
from vramscope_analysis.replay.recording import Recording

NOWHERE: Final = int(np.iinfo(np.uint64).max)


@dataclass(frozen=True, slots=True)
class PastBlock:
    """A block that was live, or freed and still in use by another stream.

    Args:
        address: where it starts.
        held: the segment that it lies in.
        size_bytes: how long it is.
        requested_bytes: as asked for.
        freed_at: entry that made it free; the number of entries if none does.
        is_pending: already freed.
        is_recorded: still there at the end of the recording, which shows its size.
        excess_bytes: how much longer it may be; 0: the size is certain.
    """

    address: int
    held: HeldSegment
    size_bytes: int
    requested_bytes: int
    freed_at: int
    is_pending: bool
    is_recorded: bool
    excess_bytes: int


@dataclass(slots=True)
class _Placed:
    """A block, the memory that it lies in, and the first address that is no longer its own."""

    address: int
    live: Live
    held: HeldSegment
    boundary: int
    size_bytes: int = 0
    excess_bytes: int = 0

    @property
    def is_recorded(self) -> bool:
        return self.live.size_bytes > 0

    @property
    def least_end(self) -> int:
        return self.address + (self.live.size_bytes or self.live.requested_bytes)


class PastBlocks:
    """Finds the blocks at the position that an undoing has reached.

    A block that is gone at the end was as long as its rounded request, or it kept a rest that
    was too small to split off (``should_split``): then it reached to whatever came behind it.
    What came behind shows in the blocks that were live with it. Only where all of them lie
    further off, in the large pool without expandable segments, it may be one or the other: then
    the placement of later blocks decides as far as it can (``best_fit``).

    Args:
        recording: whose settings and entries to go by.
        undo: what was live; its contradictions are counted on here.
        held: what was held, by address, with the pools known.
    """

    def __init__(self, recording: Recording, undo: Undo, held: Sequence[HeldSegment]) -> None:
        self._recording = recording
        self.position = undo.position
        self._held = held
        overlapping = Contradictions(unseen_segments=undo.overlapping_segments)
        self.contradictions = undo.contradictions + overlapping
        self._placed = list(self._in_segments(undo))
        self._drop_overlapped()
        self._drop_overwritten()
        self._set_sizes()
        self.blocks = [
            PastBlock(
                address=block.address,
                held=block.held,
                size_bytes=block.size_bytes,
                requested_bytes=block.live.requested_bytes,
                freed_at=block.live.freed_at,
                is_pending=block.address in undo.pending,
                is_recorded=block.is_recorded,
                excess_bytes=block.excess_bytes,
            )
            for block in self._placed
        ]

    def _in_segments(self, undo: Undo) -> Iterator[_Placed]:
        """Blocks by address; a block of the end in a segment that came later is unseen."""
        starts = [held.address for held in self._held]
        for address, live in sorted(undo.live.items()):
            index = bisect_right(starts, address) - 1
            if index >= 0:
                placed = _Placed(address, live, self._held[index], self._held[index].end)
                if placed.least_end <= placed.boundary:
                    yield placed
                    continue
            self.contradictions["unseen_allocs" if live.size_bytes else "unseen_segments"] += 1

    def _drop_overlapped(self) -> None:
        """Where two blocks overlap, the one that no entry mentions was not there yet."""
        kept: list[_Placed] = []
        for block in self._placed:
            while kept and kept[-1].least_end > block.address and kept[-1].is_recorded:
                kept.pop()
                self.contradictions["unseen_allocs"] += 1
            if kept and kept[-1].least_end > block.address:
                self.contradictions["unseen_allocs" if block.is_recorded else "impossible"] += 1
            else:
                kept.append(block)
        self._placed = kept

    def _drop_overwritten(self) -> None:
        """Find the first block that comes to lie behind each; inside of it, it was not there."""
        first_allocs = self._first_allocs_behind()
        kept: list[_Placed] = []
        for block, first_alloc in zip(self._placed, first_allocs, strict=True):
            if first_alloc >= block.least_end:
                block.boundary = min(block.boundary, first_alloc)
                kept.append(block)
            elif block.is_recorded:
                self.contradictions["unseen_allocs"] += 1
            else:
                self.contradictions["impossible"] += 1
                kept.append(block)
        for block, following in pairwise(kept):
            block.boundary = min(block.boundary, following.address)
        self._placed = kept

    def _first_allocs_behind(self) -> list[int]:
        """For each block: lowest address above its own handed out in its segment while it lives."""
        if not self._placed:
            return []
        events = self._recording.events
        allocs = np.flatnonzero(events.actions[self.position :] == ALLOC) + self.position
        starts = np.array([block.address for block in self._placed], np.uint64)
        freed_at = np.array([block.live.freed_at for block in self._placed], np.int64)
        ends = np.array([block.held.end for block in self._placed], np.uint64)
        addresses = events.addresses[allocs]
        before = np.searchsorted(starts, addresses, "right") - 1
        is_behind = (
            (before >= 0)
            & (addresses > starts[before])
            & (addresses < ends[before])
            & (allocs < freed_at[before])
        )
        first = np.full(len(starts), NOWHERE, np.uint64)
        np.minimum.at(first, before[is_behind], addresses[is_behind])
        return [int(address) for address in first]

    def _set_sizes(self) -> None:
        uncertain: dict[int, UncertainBlock] = {}
        for block in self._placed:
            if block.is_recorded:
                block.size_bytes = block.live.size_bytes
                continue
            rounded_bytes = round_size(block.live.requested_bytes, self._recording.settings)
            unsplit_bytes = self._most_unsplit_bytes(block.held, rounded_bytes)
            room_bytes = block.boundary - block.address
            if room_bytes < rounded_bytes:
                # The settings, which those of the end need not be, asked for less.
                self.contradictions["misfits"] += 1
            block.size_bytes = rounded_bytes
            if room_bytes <= rounded_bytes + unsplit_bytes:
                block.size_bytes = room_bytes
            elif unsplit_bytes:
                uncertain[block.address] = UncertainBlock(
                    block.address,
                    rounded_bytes,
                    block.live.freed_at,
                    (block.held.stream, block.held.pool_id),
                    room_bytes - rounded_bytes,
                    unsplit_bytes,
                )
        if uncertain:
            self._narrow(uncertain)

    def _narrow(self, uncertain: dict[int, UncertainBlock]) -> None:
        starts = [block.address for block in self._placed]
        narrow(self._recording, self.position, self._held, starts, list(uncertain.values()))
        for block in self._placed:
            if block.address in uncertain:
                least, most = uncertain[block.address].kept_bytes()
                block.size_bytes += least
                block.excess_bytes = most - least

    def _most_unsplit_bytes(self, held: HeldSegment, rounded_bytes: int) -> int:
        """Most that a block may keep beyond its rounded request (``should_split``)."""
        settings = self._recording.settings
        if held.is_small or held.is_expandable:
            return 0
        if settings.expandable_segments:
            rules = rules_of(self._recording.version)
            if held.pool_id == DEFAULT_POOL_ID or not rules.pages_by_request:
                return 0
        if rounded_bytes < settings.max_split_size_bytes:
            return SMALL_BYTES
        most = max(settings.max_non_split_rounding_bytes, ROUND_LARGE_BYTES)
        return most - MIN_BLOCK_BYTES
