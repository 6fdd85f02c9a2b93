"""What later placements tell about the size of a block: the allocator takes the best fit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.allocator.rounding import (
    MIN_BLOCK_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    round_size,
)
from vramscope_analysis.allocator.version_rules import TieBreak, tie_break_of
from vramscope_analysis.replay.past.held_memory import HeldSegment, pool_of
from vramscope_analysis.replay.past.uncertain_block import Group, UncertainBlock
from vramscope_analysis.replay.pools import pool_id
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

OF_BLOCKS: Final = (Action.ALLOC, Action.FREE_COMPLETED, Action.OOM)
OF_SEGMENTS: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE)
GIVEN_BACK: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


class _Event(NamedTuple):
    entry: int
    action: int
    address: int
    size_bytes: int


def narrow(
    recording: Recording,
    position: int,
    held: Sequence[HeldSegment],
    live: Sequence[int],
    uncertain: Sequence[UncertainBlock],
) -> None:
    """Exclude from uncertain blocks what contradicts the placement of the blocks after them.

    A request that was served by a free block of some size shows that no free block of its group
    was large enough and smaller (``get_free_block``); a request that a new segment was taken for
    shows that none was large enough, as does one that failed. A replay that starts with sizes
    that pass all of this places every block where it was recorded.

    Args:
        recording: its entries from ``position`` on.
        position: where the blocks are uncertain.
        held: segments at the position, by address.
        live: addresses of all blocks at the position, in order.
        uncertain: some of them.
    """
    space = _LargePool(recording, held, live, uncertain)
    for event in _entries_of_large_pool(recording, position, max(b.freed_at for b in uncertain)):
        if event.action == Action.ALLOC:
            space.alloc(event)
        elif event.action == Action.FREE_COMPLETED:
            space.free(event)
        elif event.action == Action.OOM:
            space.out_of_memory(event)
        elif event.action == Action.SEGMENT_ALLOC:
            space.add_segment(event)
        else:
            space.remove_segment(event)


def _entries_of_large_pool(recording: Recording, start: int, last: int) -> Iterator[_Event]:
    events = recording.events
    chosen = np.isin(events.actions, OF_BLOCKS) & (events.sizes > SMALL_BYTES)
    chosen |= np.isin(events.actions, OF_SEGMENTS) & (events.sizes != SMALL_SEGMENT_BYTES)
    indices = np.flatnonzero(chosen[start : last + 1]) + start
    columns = (indices, events.actions[indices], events.addresses[indices], events.sizes[indices])
    yield from map(_Event, *(column.tolist() for column in columns))


class _LargePool:
    """Where blocks start and segments end in the large pool, and the space behind the uncertain."""

    def __init__(
        self,
        recording: Recording,
        held: Sequence[HeldSegment],
        live: Sequence[int],
        uncertain: Sequence[UncertainBlock],
    ) -> None:
        self._events = recording.events
        self._settings = recording.settings
        self._breaks_ties_by_address = tie_break_of(recording.version) is TieBreak.ADDRESS
        self._only_pool = _only_pool(recording)
        segments = [s for s in held if not s.is_small and not s.is_expandable]
        self._segment_starts = [segment.address for segment in segments]
        self._segments = {s.address: (s.end, (s.stream, s.pool_id)) for s in segments}
        self._bounds = sorted([*live, *(segment.end for segment in segments)])
        self._uncertain = {block.address: block for block in uncertain}
        self._most_unsplit_bytes = max(block.unsplit_bytes for block in uncertain)
        self._spaces: defaultdict[Group, list[tuple[int, int]]] = defaultdict(list)
        for block in uncertain:
            self._add_space(block)

    def alloc(self, event: _Event) -> None:
        """A block is handed out: compare the space that it came from with all other."""
        position = bisect_right(self._segment_starts, event.address) - 1
        if position < 0:
            return
        segment_end, group = self._segments[self._segment_starts[position]]
        if event.address >= segment_end:
            return
        after = bisect_right(self._bounds, event.address)
        if after == len(self._bounds):
            return
        rounded_bytes = round_size(event.size_bytes, self._settings)
        spaces = self._spaces.get(group)
        if spaces:
            if not self._has_new_segment(event):
                self._compare(spaces, event.address, rounded_bytes, self._bounds[after])
            elif self._nothing_was_freed_since_the_search(event.entry - 2):
                self._exclude(spaces, rounded_bytes, self._least_refused_bytes(rounded_bytes))
        self._bounds.insert(after, event.address)

    def out_of_memory(self, event: _Event) -> None:
        """A request found no block, and then no memory: its size is rounded already."""
        spaces = self._spaces.get(self._group_of(event))
        if spaces and self._nothing_was_freed_since_the_search(event.entry - 1):
            self._exclude(spaces, event.size_bytes, self._least_refused_bytes(event.size_bytes))

    def free(self, event: _Event) -> None:
        """A block becomes free: the space before it grows."""
        position = self._drop_bound(event.address)
        if position is None:
            return
        freed = self._uncertain.get(event.address)
        if freed is not None and freed.freed_at == event.entry:
            self._remove_space(freed)
            del self._uncertain[event.address]
        if not 0 < position < len(self._bounds):
            return
        before = self._uncertain.get(self._bounds[position - 1])
        if before is not None:
            self._remove_space(before)
            before.space_bytes = self._bounds[position] - before.end
            self._add_space(before)

    def add_segment(self, event: _Event) -> None:
        """A segment comes from the device."""
        end = event.address + event.size_bytes
        if event.address not in self._segments:
            insort(self._segment_starts, event.address)
            insort(self._bounds, end)
            self._segments[event.address] = (end, self._group_of(event))

    def remove_segment(self, event: _Event) -> None:
        """A segment goes back to the device."""
        segment = self._segments.pop(event.address, None)
        if segment is not None:
            del self._segment_starts[bisect_left(self._segment_starts, event.address)]
            self._drop_bound(segment[0])

    def _drop_bound(self, address: int) -> int | None:
        """Take a bound out; where it was, or None if there is none (contradictory entries)."""
        position = bisect_left(self._bounds, address)
        if position == len(self._bounds) or self._bounds[position] != address:
            return None
        del self._bounds[position]
        return position

    def _group_of(self, event: _Event) -> Group:
        pool_id = pool_of(self._events, event.entry) or self._only_pool
        return int(self._events.streams[event.entry]), pool_id

    def _add_space(self, block: UncertainBlock) -> None:
        insort(self._spaces[block.group], (block.space_bytes, block.address))

    def _remove_space(self, block: UncertainBlock) -> None:
        spaces = self._spaces[block.group]
        del spaces[bisect_left(spaces, (block.space_bytes, block.address))]

    def _compare(
        self, spaces: list[tuple[int, int]], address: int, rounded_bytes: int, bound: int
    ) -> None:
        """No free block was large enough and came before the one that was taken."""
        taken_bytes = bound - address
        self._exclude(spaces, rounded_bytes, taken_bytes)
        if self._breaks_ties_by_address:
            self._exclude(spaces, taken_bytes, taken_bytes + MIN_BLOCK_BYTES, below=address)

    def _exclude(
        self,
        spaces: list[tuple[int, int]],
        least_bytes: int,
        end_bytes: int,
        below: int | None = None,
    ) -> None:
        for position in range(bisect_left(spaces, (least_bytes, 0)), len(spaces)):
            space_bytes, address = spaces[position]
            if space_bytes - self._most_unsplit_bytes >= end_bytes:
                break
            if below is None or address < below:
                self._uncertain[address].exclude(least_bytes, end_bytes)

    def _has_new_segment(self, event: _Event) -> bool:
        before = event.entry - 1
        return before >= 0 and (
            int(self._events.actions[before]) == Action.SEGMENT_ALLOC
            and int(self._events.addresses[before]) == event.address
        )

    def _nothing_was_freed_since_the_search(self, entry: int) -> bool:
        """Whether the entries up to one leave free blocks as the request before had found them.

        A release of the cache comes after the search. It waits for pending frees first, which
        may have made a block larger; the segments that it gives back make none smaller.
        """
        actions = self._events.actions
        while entry >= 0 and actions[entry] in GIVEN_BACK:
            entry -= 1
        if entry < 0:
            return False
        if actions[entry] == Action.FREE_COMPLETED:
            return entry > 0 and bool(actions[entry - 1] == Action.FREE_REQUESTED)
        return True

    def _least_refused_bytes(self, rounded_bytes: int) -> int:
        """Size from which on a free block is too large to serve a request (``get_free_block``)."""
        if rounded_bytes < self._settings.max_split_size_bytes:
            return self._settings.max_split_size_bytes
        return rounded_bytes + self._settings.max_non_split_rounding_bytes


def _only_pool(recording: Recording) -> PoolId | None:
    """The pool that every segment of the end belongs to; None if there are several."""
    pools = {pool_id(segment) for segment in recording.segments}
    return pools.pop() if len(pools) == 1 else None
