"""The memory that a job could have, found by replaying it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from vramscope_analysis.allocator import Version
from vramscope_analysis.replay.capacity import Capacity, inferred
from vramscope_analysis.replay.comparison import SegmentMismatch
from vramscope_analysis.replay.flushes import Flush, flushes_of
from vramscope_analysis.replay.placement import SegmentEvent
from vramscope_analysis.replay.recorded_replay import RecordedReplay
from vramscope_analysis.replay.recording import Recording

MAX_TRIALS: Final = 40
"""Replays that a search may take; each ends where it first differs from the recording."""

PIECE: Final = 1 << 11
"""Entries replayed between two looks at whether something differs."""


class CapacitySearch:
    """Narrows down a cap until the replayed job flushes when the recorded one did.

    What differs first tells the way. A replay that gives back more than was recorded has too
    little; one that gives back less has too much. Or somebody asked for the flush: then it is made
    where it was recorded, as a call of ``empty_cache``.
    """

    def __init__(self, recording: Recording, version: Version | None = None) -> None:
        self._recording = recording
        self._version = version
        self._flushes = {flush.cause: flush for flush in flushes_of(recording)}
        self._trials = 0

    def from_guess(self, capacity: Capacity) -> tuple[Capacity, int]:
        """The best cap from a first guess on.

        Returns:
            The cap, and the entry at which the replay first differs under it; the number of
            entries if it never does.
        """
        entries = len(self._recording.events)
        best, furthest = capacity, -1
        while True:
            mismatch = self._first_mismatch(capacity)
            at = entries if mismatch is None else mismatch.event
            if at > furthest:
                best, furthest = capacity, at
            if mismatch is None or self._trials >= MAX_TRIALS:
                return best, furthest
            better = self._asked_for(capacity, mismatch) or self._narrowed(capacity, mismatch)
            if better is None:
                return best, furthest
            capacity = better

    def _first_mismatch(self, capacity: Capacity) -> SegmentMismatch | None:
        self._trials += 1
        replay = RecordedReplay(self._recording, capacity, version=self._version)
        for until in range(PIECE, len(self._recording.events) + PIECE, PIECE):
            replay.advance(until)
            if replay.comparison.first_segments is not None:
                break
        return replay.comparison.first_segments

    def _asked_for(self, capacity: Capacity, mismatch: SegmentMismatch) -> Capacity | None:
        """The same cap with one flush more that somebody asked for, if that explains it."""
        flush = self._flushes.get(mismatch.event)
        if flush is None or flush.is_failure or not self._is_allocators(capacity, flush):
            return None
        asked = replace(capacity, asked_flushes=capacity.asked_flushes | {flush.first})
        after = self._first_mismatch(asked)
        return asked if after is None or after.event > mismatch.event else None

    def _is_allocators(self, capacity: Capacity, flush: Flush) -> bool:
        threshold = self._recording.settings.garbage_collection_threshold
        return capacity.refuses(flush) or capacity.collects(flush, threshold)

    def _narrowed(self, capacity: Capacity, mismatch: SegmentMismatch) -> Capacity | None:
        """Another cap, between this one and one of its bounds."""
        lowest, highest, size = (
            capacity.lowest_bytes,
            capacity.highest_bytes,
            capacity.allowed_bytes,
        )
        if capacity.source != "inferred" or highest is None or size is None:
            return None
        if self._has_too_little(mismatch):
            lowest = size + 1
        else:
            highest = size
        if lowest >= highest:
            return None
        other = inferred(lowest, highest, is_limit=capacity.limit_bytes is not None)
        return replace(other, asked_flushes=capacity.asked_flushes)

    def _has_too_little(self, mismatch: SegmentMismatch) -> bool:
        if self._recording.events.segment_signs[mismatch.event : mismatch.event + 1].any():
            return False  # all was given back for a user; the recorded flush was a smaller one
        return _given_back(mismatch.made) > _given_back(mismatch.expected)


def _given_back(events: Iterable[SegmentEvent]) -> int:
    freed = ("segment_free", "segment_unmap")
    return sum(size_bytes for action, _address, size_bytes, _stream in events if action in freed)
