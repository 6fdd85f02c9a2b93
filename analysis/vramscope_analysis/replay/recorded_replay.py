"""A recorded job replayed as it was, and compared with its trace on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vramscope_analysis.allocator import CachingAllocator, OutOfMemoryError, PoolId, Version
from vramscope_analysis.replay.calls import EMPTY_CACHE, MALLOC, OUT_OF_MEMORY, calls_of
from vramscope_analysis.replay.capacity import Capacity, refusals
from vramscope_analysis.replay.comparison import Comparison
from vramscope_analysis.replay.past.initial_state import InitialState, initial_state
from vramscope_analysis.replay.placement import RecordedAddresses, SegmentEvent
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.replay.replayed_job import ReplayedJob

Progress = Callable[[int, int], None]
"""Called with (entries done, entries in all)."""

STRIDE: Final = 1 << 15
"""Calls between two reports of progress."""


class RecordedReplay:
    """Makes the calls of a recording under its own settings, step by step.

    Args:
        recording: the job.
        capacity: what bound it.
        version: torch release to follow; None is the one that the recording was made with.

    Raises:
        ValueError: a version whose rules are not modelled.
    """

    def __init__(
        self, recording: Recording, capacity: Capacity, *, version: Version | None = None
    ) -> None:
        self.recording = recording
        self.comparison = Comparison()
        self.initial: InitialState | None = None
        if not recording.starts_empty:
            self.initial = initial_state(recording)
        segments = self.initial.segments if self.initial else []
        start = self.initial.position if self.initial else 0
        self._addresses = RecordedAddresses(recording.events, start=start, held=segments)
        self.model = CachingAllocator(
            capacity.capacity_bytes,
            recording.settings,
            limit_bytes=capacity.limit_bytes,
            version=recording.version if version is None else version,
            addresses=self._addresses,
            on_event=self._note,
        )
        self._job = ReplayedJob(self.model, segments)
        self._calls = calls_of(recording, capacity, start=start)
        self._refusals = refusals(recording) if capacity.source == "varying" else {}
        self._has_ranges = recording.settings.expandable_segments
        self._next_call = 0
        self._is_compared = False
        self._made: list[SegmentEvent] = []

    @property
    def misplaced(self) -> int:
        """Segment events and blocks so far that differ from the recorded ones."""
        return self.comparison.segment_mismatches + self.comparison.block_mismatches

    @property
    def unknown_frees(self) -> int:
        """Frees so far of blocks that the replay does not have."""
        return self._job.unknown_frees

    def advance(self, until: int | None = None, progress: Progress | None = None) -> None:
        """Make every call whose entry comes before ``until``; None is the end of the recording."""
        entries = len(self.recording.events)
        stop = len(self._calls) if until is None else self._calls.until(until)
        while self._next_call < stop:
            end = min(self._next_call + STRIDE, stop)
            self._make(self._next_call, end)
            self._next_call = end
            if progress is not None:
                progress(int(self._calls.events[end - 1]) + 1, entries)
        if until is None and not self._is_compared:
            self._is_compared = True
            self._compare_rest()

    def _make(self, start: int, stop: int) -> None:
        call = self._job.call
        for operation, event, address, size_bytes, stream, pool_id in self._calls.rows(start, stop):
            if operation in (MALLOC, OUT_OF_MEMORY):
                self._request(operation, event, address, size_bytes, stream, pool_id)
            elif operation == EMPTY_CACHE:
                self._addresses.expect_until(event)
                call(operation, address, pool_id)
                self._compare(event)
            else:
                call(operation, address, pool_id)

    def _request(
        self,
        operation: int,
        event: int,
        address: int,
        size_bytes: int,
        stream: int,
        pool_id: PoolId | None,
    ) -> None:
        addresses = self._addresses
        if event > addresses.next_event:
            addresses.expect_until(event)
        if self._has_ranges:
            addresses.expect_for(size_bytes, stream)
        if event in self._refusals:
            self.model.set_limit(self._refusals[event])
        try:
            block = self.model.malloc(size_bytes, stream, pool_id)
        except OutOfMemoryError:
            if operation == MALLOC:
                self.comparison.block(event, f"a block at {address:#x}", "out of memory")
        else:
            if operation == OUT_OF_MEMORY:
                self.comparison.block(event, "out of memory", f"a block at {block.address:#x}")
                self.model.free(block)
            else:
                if block.address != address:
                    self.comparison.block(
                        event, f"a block at {address:#x}", f"a block at {block.address:#x}"
                    )
                self._job.blocks[address] = block
        if event in self._refusals:
            self.model.set_limit(None)
        if self._made or addresses.expected:
            self._compare(event)

    def _note(
        self, action: str, address: int, size_bytes: int, stream: int, _pool_id: PoolId
    ) -> None:
        if action.startswith("segment_"):
            self._made.append((action, address, size_bytes, stream))

    def _compare(self, event: int) -> None:
        self.comparison.segments(event, self._addresses.expected, self._made)
        self._addresses.expect_nothing()
        self._made.clear()

    def _compare_rest(self) -> None:
        """What is recorded after the last call, and what is held at the end."""
        entries = len(self.recording.events)
        self._addresses.expect_until(entries)
        self._compare(entries)
        self.comparison.final(entries, self.recording.segments, self.model.segments())
