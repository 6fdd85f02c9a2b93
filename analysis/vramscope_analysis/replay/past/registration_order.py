"""In which order memory was registered, as far as placements tell: from torch 2.12 on it counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

import numpy as np

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.allocator.rounding import (
    MIN_BLOCK_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    round_size,
)
from vramscope_analysis.replay.past.held_memory import HeldSegment, pool_of
from vramscope_analysis.replay.past.past_blocks import PastBlock
from vramscope_analysis.replay.past.undo import (
    ALLOC,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
)
from vramscope_analysis.replay.recording import Recording

_FOLLOWED: Final = (ALLOC, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE)

Rivals: TypeAlias = tuple[int, PoolId | None, bool]
"""Stream, pool, and whether it is the small half: blocks that compete for a request."""


@dataclass(slots=True)
class _Piece:
    """A block, live or free.

    Args:
        size_bytes: how long it is.
        segment: address of its segment.
        number: address that the block object had at the start; None: made since. Splitting
            makes a new object of the front, joining keeps that of the block that is freed.
        is_sure: whether its start and its size are certain.
    """

    size_bytes: int
    segment: int
    number: int | None
    is_sure: bool


class Registrations:
    """Follows every block of the plain segments to see which of equal free ones was taken.

    Up to 2.12 each block has a number, from 2.13 on each segment has one, and of free blocks of
    one size the one with the lowest number is taken (``BlockComparatorSize``). What is held at the
    start has lower numbers than all that comes later; which among itself, only choices tell.

    Args:
        recording: its entries from ``position`` on.
        position: when all of this was held and live.
        held: by address, with the pools known.
        blocks: by address.
    """

    def __init__(
        self,
        recording: Recording,
        position: int,
        held: Sequence[HeldSegment],
        blocks: Sequence[PastBlock],
    ) -> None:
        self._recording = recording
        self._pieces: dict[int, _Piece] = {}
        self._free: set[int] = set()
        self._free_ends: dict[int, int] = {}
        self._by_size: defaultdict[tuple[Rivals, int], set[int]] = defaultdict(set)
        self._groups: dict[int, Rivals] = {}
        self._new_segment: int | None = None
        self._earlier_segments: defaultdict[int, set[int]] = defaultdict(set)
        self._earlier_blocks: defaultdict[int, set[int]] = defaultdict(set)
        self._begin(held, blocks)
        segments, pieces = sorted(self._groups), sorted(self._pieces)
        self._old_segments = set(segments)  # without those that are gone by then
        self._follow(position)
        self.of_segments = _ranks(segments, self._earlier_segments)
        self.of_blocks = _ranks(pieces, self._earlier_blocks)

    def _begin(self, held: Sequence[HeldSegment], blocks: Sequence[PastBlock]) -> None:
        index = 0
        for segment in held:
            start, is_sure = segment.address, True
            if not segment.is_expandable:
                self._groups[start] = (segment.stream, segment.pool_id, bool(segment.is_small))
            while index < len(blocks) and blocks[index].address < segment.end:
                block = blocks[index]
                index += 1
                if segment.is_expandable:
                    continue
                self._add(start, block.address - start, segment.address, is_sure, is_free=True)
                self._add(block.address, block.size_bytes, segment.address, True, is_free=False)
                start = block.address + block.size_bytes
                is_sure = not block.excess_bytes
            if not segment.is_expandable:
                self._add(start, segment.end - start, segment.address, is_sure, is_free=True)

    def _add(
        self, start: int, size_bytes: int, segment: int, is_sure: bool, *, is_free: bool
    ) -> None:
        if size_bytes:
            self._pieces[start] = _Piece(size_bytes, segment, start, is_sure)
            if is_free:
                self._make_free(start)

    def _follow(self, position: int) -> None:
        events = self._recording.events
        chosen = np.isin(events.actions[position:], _FOLLOWED)
        entries = np.flatnonzero(chosen) + position
        columns = (events.actions, events.addresses, events.sizes)
        rows = zip(entries.tolist(), *(column[entries].tolist() for column in columns), strict=True)
        for entry, action, address, size_bytes in rows:
            if action == ALLOC:
                self._alloc(address, size_bytes)
            elif action == FREE_COMPLETED:
                self._complete_free(address)
            elif action == SEGMENT_ALLOC and address not in self._pieces:
                stream = int(events.streams[entry])
                is_small = size_bytes == SMALL_SEGMENT_BYTES
                self._groups[address] = (stream, pool_of(events, entry), is_small)
                self._pieces[address] = _Piece(size_bytes, address, None, True)
                self._new_segment = address
            elif action == SEGMENT_FREE and address in self._free:
                self._take(address)
                del self._pieces[address]
                self._old_segments.discard(address)

    def _alloc(self, start: int, requested_bytes: int) -> None:
        """Blocks of the same size that are free and were not taken come later.

        What is left of the block is split off as in ``alloc_found_block``.
        """
        piece = self._pieces.get(start)
        if piece is None:
            return
        if start in self._free:
            if piece.is_sure:
                self._compare(start, piece)
            self._take(start)
        elif start != self._new_segment:
            return
        self._new_segment = None
        settings = self._recording.settings
        rounded_bytes = round_size(requested_bytes, settings)
        rest_bytes = piece.size_bytes - rounded_bytes
        if self._groups[piece.segment][2] or settings.expandable_segments:
            splits = rest_bytes >= MIN_BLOCK_BYTES
        else:
            splits = rest_bytes > SMALL_BYTES and rounded_bytes < settings.max_split_size_bytes
        if splits and start + rounded_bytes not in self._pieces:
            rest = _Piece(rest_bytes, piece.segment, piece.number, True)
            self._pieces[start + rounded_bytes] = rest
            piece.size_bytes, piece.number = rounded_bytes, None
            self._make_free(start + rounded_bytes)

    def _complete_free(self, start: int) -> None:
        """A block joins its free neighbours (``try_merge_blocks``)."""
        piece = self._pieces.get(start)
        if piece is None or start in self._free:
            return
        end = start + piece.size_bytes
        following = self._pieces.get(end)
        if following is not None and end in self._free and following.segment == piece.segment:
            self._take(end)
            piece.size_bytes += self._pieces.pop(end).size_bytes
        before = self._free_ends.get(start)
        if before is not None and self._pieces[before].segment == piece.segment:
            self._take(before)
            joined = self._pieces.pop(before)
            del self._pieces[start]
            piece.size_bytes += joined.size_bytes
            piece.is_sure = joined.is_sure
            self._pieces[before] = piece
            start = before
        self._make_free(start)

    def _compare(self, start: int, piece: _Piece) -> None:
        for other_start in self._by_size[self._groups[piece.segment], piece.size_bytes]:
            if other_start == start:
                continue
            other = self._pieces[other_start]
            if other.segment != piece.segment and self._old_segments.issuperset(
                (other.segment, piece.segment)
            ):
                self._earlier_segments[other.segment].add(piece.segment)
            if other.number is not None and piece.number is not None:
                self._earlier_blocks[other.number].add(piece.number)

    def _make_free(self, start: int) -> None:
        piece = self._pieces[start]
        self._free.add(start)
        self._free_ends[start + piece.size_bytes] = start
        if piece.is_sure:
            self._by_size[self._groups[piece.segment], piece.size_bytes].add(start)

    def _take(self, start: int) -> None:
        piece = self._pieces[start]
        self._free.remove(start)
        end = start + piece.size_bytes
        # Segments may overlap where a recording contradicts itself.
        if self._free_ends.get(end) == start:
            del self._free_ends[end]
        self._by_size[self._groups[piece.segment], piece.size_bytes].discard(start)


def _ranks(members: Sequence[int], earlier: dict[int, set[int]]) -> dict[int, int]:
    """Number members so that each comes after all that are earlier, else by address.

    What contradicts itself, as a choice under other settings would, is numbered by address.
    """
    known = set(members)
    later: defaultdict[int, list[int]] = defaultdict(list)
    waiting: dict[int, int] = {}
    for member in members:
        before = earlier.get(member, set[int]()) & known
        waiting[member] = len(before)
        for other in before:
            later[other].append(member)
    ready = [member for member in members if not waiting[member]]
    heapify(ready)
    ranks: dict[int, int] = {}
    while ready:
        member = heappop(ready)
        ranks[member] = len(ranks)
        for other in later[member]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, other)
    for member in members:
        ranks.setdefault(member, len(ranks))
    return ranks
