"""Walks a recording backwards: what was live and what was held before any of its entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from vramscope_analysis.replay.past.held_memory import (
    HeldSegment,
    MappedPages,
    joined,
    pool_of,
    without_overlaps,
)
from vramscope_analysis.replay.pools import pool_id
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

CHUNK_ENTRIES: Final = 1 << 16

Contradictions: TypeAlias = Counter[str]
"""How often the end of a recording and its entries disagree, by kind.

``snapshot()`` is not atomic: what happens between the copy of the trace and that of the segments
is in the latter only: ``unseen_allocs``, ``unseen_frees``, ``unseen_segments``. ``misfits`` are
blocks that settings other than those of the end must have given their size. ``impossible`` is
what no allocator does: a block freed twice, or handed out while it is live.
"""

ALLOC: Final = int(Action.ALLOC)
FREE_REQUESTED: Final = int(Action.FREE_REQUESTED)
FREE_COMPLETED: Final = int(Action.FREE_COMPLETED)
BLOCK_ACTIONS: Final = (ALLOC, FREE_REQUESTED, FREE_COMPLETED)
SEGMENT_ALLOC: Final = int(Action.SEGMENT_ALLOC)
SEGMENT_FREE: Final = int(Action.SEGMENT_FREE)
SEGMENT_MAP: Final = int(Action.SEGMENT_MAP)
SEGMENT_UNMAP: Final = int(Action.SEGMENT_UNMAP)
SEGMENT_ACTIONS: Final = (SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP)


class Live(NamedTuple):
    """A block that takes up memory.

    Args:
        requested_bytes: as asked for.
        freed_at: entry that made it free again; the number of entries if none does.
        size_bytes: of the block, if the end of the recording shows it; else 0.
    """

    requested_bytes: int
    freed_at: int
    size_bytes: int


class Undo:
    """State of the allocator before one entry, moved towards the start of the recording.

    Undoing an ``alloc`` makes its block free, undoing a ``free_completed`` makes one pending,
    undoing its ``free_requested`` makes it allocated; segments likewise. The sizes of blocks that
    are not there at the end do not come out of this (:class:`PastBlocks` infers them).

    Args:
        recording: its segments are the state to begin with.
    """

    def __init__(self, recording: Recording) -> None:
        self._events = recording.events
        self.position = len(recording.events)
        self.live: dict[int, Live] = {}
        self.pending: set[int] = set()
        self.segments: dict[int, HeldSegment] = {}
        self.pages = MappedPages()
        self.contradictions: Contradictions = Counter()
        # A recording may leave entries out (skip_actions): then a free has one entry, not two.
        self._has_requests = bool(np.any(self._events.actions == FREE_REQUESTED))
        self._has_completions = bool(np.any(self._events.actions == FREE_COMPLETED))
        self._leaves_requests_out = False
        for segment in recording.segments:
            self._begin_with(segment)
        self._take_back_unseen_blocks()
        self._take_back_unseen_segments()

    @property
    def is_empty(self) -> bool:
        """Whether the device's memory is all its own."""
        return not self.segments and not len(self.pages)

    def held(self) -> list[HeldSegment]:
        """Segments by address; pages that lie mapped without a gap are one."""
        return joined(self._without_overlaps()[0])

    @property
    def overlapping_segments(self) -> int:
        """How many segments are left out because others, which entries know, lie there."""
        return self._without_overlaps()[1]

    def _without_overlaps(self) -> tuple[list[HeldSegment], int]:
        every = [*self.segments.values(), *self.pages]
        return without_overlaps(sorted(every, key=lambda held: held.address))

    def back_to(self, position: int) -> None:
        """Undo every entry from ``position`` on.

        Raises:
            ValueError: the position is not in the recording, or was passed already.
        """
        if not 0 <= position <= self.position:
            raise ValueError(f"expected a position from 0 to {self.position}, got {position}")
        for end in range(self.position, position, -CHUNK_ENTRIES):
            self._undo(max(position, end - CHUNK_ENTRIES), end)
        if self._leaves_requests_out:
            self.pending = {a for a in self.pending if self.live[a].freed_at == len(self._events)}
        self.position = position

    def _begin_with(self, segment: dict[str, Any]) -> None:
        held = HeldSegment(
            address=segment["address"],
            size_bytes=segment["total_size"],
            stream=segment["stream"],
            pool_id=pool_id(segment),
            is_small=segment["segment_type"] == "small",
            is_expandable=segment.get("is_expandable", False),
            freed_at=None,
        )
        if held.is_expandable:
            self.pages.add(held)
        else:
            self.segments[held.address] = held
        address = held.address
        for block in segment["blocks"]:
            size_bytes = block["size"]
            if block["state"] != "inactive":
                # Before torch 2.1 a block has no requested size; nothing else is missing then.
                requested_bytes = block.get("requested_size", size_bytes)
                self.live[address] = Live(requested_bytes, self.position, size_bytes)
                if block["state"] != "active_allocated":
                    self.pending.add(address)
            address += size_bytes

    def _take_back_unseen_blocks(self) -> None:
        """Bring the blocks of the end to what they were after the last entry."""
        for entry in self._last_entries(BLOCK_ACTIONS):
            action, address, size_bytes = self._entry(entry)
            block = self.live.get(address)
            was_pending = address in self.pending
            is_pending = action == FREE_REQUESTED
            if action == FREE_COMPLETED:
                if block is not None:
                    del self.live[address]
                    self.pending.discard(address)
                    self.contradictions["unseen_allocs"] += 1
                continue
            if is_pending and not was_pending and not self._has_completions:
                continue  # such a free is complete at once
            if block is None or block.requested_bytes != size_bytes:
                self.live[address] = Live(size_bytes, self.position, 0)
                self.contradictions["unseen_frees" if block is None else "unseen_allocs"] += 1
            elif was_pending != is_pending:
                self.contradictions["unseen_frees" if was_pending else "unseen_allocs"] += 1
            (self.pending.add if is_pending else self.pending.discard)(address)

    def _take_back_unseen_segments(self) -> None:
        """The same for segments. Pages of one that expands are not looked at one by one."""
        for entry in self._last_entries((SEGMENT_ALLOC, SEGMENT_FREE)):
            action, address, size_bytes = self._entry(entry)
            segment = self.segments.get(address)
            if action == SEGMENT_FREE:
                if segment is not None:
                    del self.segments[address]
                    self.contradictions["unseen_segments"] += 1
            elif segment is None or segment.size_bytes != size_bytes:
                self.segments[address] = self._made_again(
                    entry, freed_at=self.position, is_expandable=False
                )
                self.contradictions["unseen_segments"] += 1

    def _last_entries(self, actions: Sequence[int]) -> list[int]:
        """The last entry with one of these actions, for each address that has any."""
        entries = np.flatnonzero(np.isin(self._events.actions, actions))[::-1]
        _, first = np.unique(self._events.addresses[entries], return_index=True)
        return [int(entry) for entry in entries[first]]

    def _entry(self, index: int) -> tuple[int, int, int]:
        """Action, address and size of an entry."""
        events = self._events
        return int(events.actions[index]), int(events.addresses[index]), int(events.sizes[index])

    def _undo(self, start: int, end: int) -> None:
        """Undo the entries from ``start`` up to ``end``."""
        events = self._events
        columns = (events.actions, events.addresses, events.sizes)
        entries = zip(*(column[start:end][::-1].tolist() for column in columns), strict=True)
        live, pending = self.live, self.pending
        index = end
        for action, address, size_bytes in entries:
            index -= 1
            if action == ALLOC:
                block = live.pop(address, None)
                if block is None or address in pending or block.requested_bytes != size_bytes:
                    self._undo_odd_alloc(address)
            elif action == FREE_COMPLETED:
                if address in live:
                    self.contradictions["impossible"] += 1
                live[address] = Live(size_bytes, index, 0)
                pending.add(address)
            elif action == FREE_REQUESTED:
                if address in pending:
                    pending.remove(address)
                else:
                    self._undo_open_request(index, address, size_bytes)
            elif action in SEGMENT_ACTIONS:
                self._undo_segment(index, action, address, size_bytes)

    def _undo_odd_alloc(self, address: int) -> None:
        """An ``alloc`` whose block is not live, is pending, or was asked for with another size."""
        if address in self.pending and not self._has_requests:
            self._leaves_requests_out = True
        else:
            self.contradictions["impossible"] += 1
        self.pending.discard(address)

    def _undo_open_request(self, index: int, address: int, size_bytes: int) -> None:
        """A ``free_requested`` that no ``free_completed`` follows."""
        if self._has_completions:
            self.contradictions["impossible"] += 1
        self.live[address] = Live(size_bytes, index, 0)

    def _undo_segment(self, index: int, action: int, address: int, size_bytes: int) -> None:
        if action == SEGMENT_ALLOC:
            segment = self.segments.pop(address, None)
            if segment is None or segment.size_bytes != size_bytes:
                self.contradictions["impossible"] += 1
        elif action == SEGMENT_FREE:
            if address in self.segments:
                self.contradictions["impossible"] += 1
            self.segments[address] = self._made_again(index, freed_at=index, is_expandable=False)
        elif action == SEGMENT_MAP:
            if not self.pages.remove(address, address + size_bytes):
                self.contradictions["unseen_segments"] += 1
        elif not self.pages.add(self._made_again(index, freed_at=index, is_expandable=True)):
            self.contradictions["unseen_segments"] += 1

    def _made_again(self, index: int, *, freed_at: int, is_expandable: bool) -> HeldSegment:
        """What an entry took from the device or gave back to it."""
        events = self._events
        return HeldSegment(
            address=int(events.addresses[index]),
            size_bytes=int(events.sizes[index]),
            stream=int(events.streams[index]),
            pool_id=pool_of(events, index),
            is_small=None,
            is_expandable=is_expandable,
            freed_at=freed_at,
        )
