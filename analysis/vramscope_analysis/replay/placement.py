"""Where segments go in a replay: where the driver had put them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from vramscope_analysis.allocator import FirstFitAddresses
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
        held: addresses of the segments that are there before it.
    """

    def __init__(self, events: Events, *, start: int = 0, held: Iterable[int] = ()) -> None:
        self.expected: list[SegmentEvent] = []
        self._events = events
        self._positions = events.segment_events
        self._next = int(np.searchsorted(self._positions, start))
        self._taken = set(held)
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
        self.expected += zip(
            [Action(action).word for action in events.actions[positions].tolist()],
            events.addresses[positions].tolist(),
            events.sizes[positions].tolist(),
            events.streams[positions].tolist(),
            strict=True,
        )

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
        for action, address, _recorded_bytes, _stream in self.expected:
            if action == "segment_map" and address not in self._taken:
                self._taken.add(address)
                return address
        return self._synthetic.reserve_range(size_bytes)

    def release_range(self, address: int, size_bytes: int) -> None:
        """An expandable segment is gone."""
        if address >= SYNTHETIC_BASE:
            self._synthetic.release_range(address, size_bytes)
        else:
            self._taken.discard(address)
