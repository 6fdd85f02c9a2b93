"""Where segments go in a replay: where the driver had put them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import FirstFitAddresses
from vramscope_analysis.allocator.rounding import SMALL_BYTES, SMALL_SEGMENT_BYTES
from vramscope_analysis.replay.mapped_ranges import mapped_ranges
from vramscope_analysis.replay.recording import Events
from vramscope_analysis.snapshot import Action

SYNTHETIC_BASE: Final = 1 << 56
"""Above the addresses of every device, which have at most 49 bits."""

SegmentEvent = tuple[str, int, int, int]
"""(action, address, size in bytes, stream) of a segment that came or went."""


class RecordedAddresses:
    """Places segments where they were when the job was recorded.

    The driver chooses addresses, and the allocator prefers blocks by address: a replay that is to
    make the same choices needs the recorded ones. What a recording does not have, because the
    replay asks for more or for other sizes, gets an address that no recording has.

    Args:
        events: the trace.
        start: first entry that counts.
        held: the segments that are there before it, in PyTorch's structure.
        places_ranges: whether the ranges of expandable segments go where they were, too.
    """

    def __init__(
        self,
        events: Events,
        *,
        start: int = 0,
        held: Sequence[Mapping[str, Any]] = (),
        places_ranges: bool = True,
    ) -> None:
        self.expected: list[SegmentEvent] = []
        self._request: tuple[int, bool] | None = None
        self._events = events
        self._positions = events.segment_events
        self._next = int(np.searchsorted(self._positions, start))
        self._taken = {int(segment["address"]) for segment in held}
        self._ranges: dict[int, int] = {}  # first address and end of what was mapped so far
        self._places_ranges = places_ranges
        self._first_pages = {first for first, _end in mapped_ranges(events)}
        self._synthetic = FirstFitAddresses(SYNTHETIC_BASE)

    @property
    def next_event(self) -> int:
        """Position of the next entry of a segment; beyond the trace if there is none."""
        if self._next < len(self._positions):
            return int(self._positions[self._next])
        return len(self._events)

    def expect_until(self, event: int) -> None:
        """The next call made all the entries of segments up to here that no call made before."""
        end = int(np.searchsorted(self._positions, event, side="right"))
        positions = self._positions[self._next : end]
        self._next = end
        events = self._events
        self._extend_ranges(positions)
        self.expected += zip(
            [Action(action).word for action in events.actions[positions].tolist()],
            events.addresses[positions].tolist(),
            events.sizes[positions].tolist(),
            events.streams[positions].tolist(),
            strict=True,
        )

    def expect_for(self, size_bytes: int, stream: int) -> None:
        """A new range of the next call is for a request like this."""
        self._request = stream, size_bytes <= SMALL_BYTES

    def expect_nothing(self) -> None:
        """The call was made."""
        self.expected = []

    def reserve(self, size_bytes: int) -> int:
        """Address of a new segment."""
        for action, address, recorded_bytes, _stream in self.expected:
            fits = action == "segment_alloc" and recorded_bytes == size_bytes
            if fits and address not in self._taken:
                self._taken.add(address)
                return address
        return self._synthetic.reserve(size_bytes)

    def release(self, address: int, size_bytes: int) -> None:
        """A segment is gone."""
        if address >= SYNTHETIC_BASE:
            self._synthetic.release(address, size_bytes)
        else:
            self._taken.discard(address)

    def reserve_range(self, size_bytes: int) -> int:
        """First address of a new expandable segment: where its first page is mapped."""
        for action, address, recorded_bytes, _stream in self.expected:
            if action == "segment_map" and self._begins_range(address):
                self._taken.add(address)
                self._ranges[address] = address + recorded_bytes
                return address
        following = self._next_range()
        return self._synthetic.reserve_range(size_bytes) if following is None else following

    def release_range(self, address: int, size_bytes: int) -> None:
        """An expandable segment is gone."""
        if address >= SYNTHETIC_BASE:
            self._synthetic.release_range(address, size_bytes)
        else:
            self._taken.discard(address)
            self._ranges.pop(address, None)

    def _next_range(self) -> int | None:
        """Where the next new range shows.

        A request that fails makes a range as well, which stays: its place shows when a later
        request of the same stream and size class maps pages there (``find_expandable_block``).
        """
        events = self._events
        for position in self._positions[self._next :].tolist():
            address = int(events.addresses[position])
            is_small = int(events.sizes[position]) == SMALL_SEGMENT_BYTES
            request = int(events.streams[position]), is_small
            if self._request is not None and request != self._request:
                continue
            is_first = address in self._first_pages and self._begins_range(address)
            if is_first and events.actions[position] == Action.SEGMENT_MAP:
                self._taken.add(address)
                self._ranges[address] = address + int(events.sizes[position])
                return address
        return None

    def _extend_ranges(self, positions: NDArray[np.int64]) -> None:
        """Pages that were mapped behind a range belong to it."""
        if not self._ranges:
            return
        for position in positions[self._events.actions[positions] == Action.SEGMENT_MAP].tolist():
            address = int(self._events.addresses[position])
            for first, end in self._ranges.items():
                if first < address <= end:
                    self._ranges[first] = max(end, address + int(self._events.sizes[position]))

    def _begins_range(self, address: int) -> bool:
        """Whether pages at an address belong to no range that is there already."""
        if not self._places_ranges or address in self._taken:
            return False
        return not any(first < address <= end for first, end in self._ranges.items())
