"""What would have been: the calls of a recorded job under other settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vramscope_analysis.allocator import (
    AllocatorSettings,
    CachingAllocator,
    OutOfMemoryError,
    Version,
)
from vramscope_analysis.replay.calls import FREE_IN_USE, MALLOC, OUT_OF_MEMORY, calls_of
from vramscope_analysis.replay.capacity import Capacity, refusals
from vramscope_analysis.replay.capacity_inference import infer_capacity
from vramscope_analysis.replay.past.initial_state import initial_state
from vramscope_analysis.replay.placement import RecordedAddresses
from vramscope_analysis.replay.prediction_result import (
    End,
    Moment,
    OutOfMemory,
    Prediction,
    Reason,
)
from vramscope_analysis.replay.recorded_replay import STRIDE, Progress
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.replay.replayed_job import ReplayedJob, held_blocks
from vramscope_analysis.replay.steps import Steps


def predict(
    recording: Recording,
    settings: AllocatorSettings,
    *,
    capacity_bytes: int | None = None,
    limit_bytes: int | None = None,
    version: Version | None = None,
    anew: bool = False,
    progress: Progress | None = None,
) -> Prediction:
    """Make the calls of a recorded job to an allocator with other settings.

    Requests, frees and ``empty_cache`` come in their recorded order; flushes that only the
    recorded allocator needed do not. What the job would have done after a failure that it did
    not have, or without one that it had, is unknown: the prediction ends there.

    Args:
        recording: the job.
        settings: what the allocator would be set to.
        capacity_bytes: what the device would have.
        limit_bytes: the process's own limit below that. If neither is given, both are what the
            recording shows; if one is, the other is none.
        version: torch release to follow; None is the newest that writes such a snapshot.
        anew: what was held before the first entry is asked for again, by an allocator that holds
            nothing: as after a new start with these settings. Else it lies in the segments that it
            had, as after a change of the settings while the job runs.
        progress: called with (entries done, entries in all).

    Raises:
        ValueError: a version whose rules are not modelled.
    """
    followed = recording.version if version is None else version
    capacity = infer_capacity(
        recording, capacity_bytes=capacity_bytes, limit_bytes=limit_bytes, version=followed
    )
    return _Run(recording, settings, capacity, followed, anew=anew).to_end(progress)


class _Run:
    """One prediction while it is made."""

    def __init__(
        self,
        recording: Recording,
        settings: AllocatorSettings,
        capacity: Capacity,
        version: Version,
        *,
        anew: bool,
    ) -> None:
        self._recording = recording
        self._capacity = capacity
        self._steps = Steps.from_annotations(recording.annotations)
        initial = None if recording.starts_empty else initial_state(recording)
        segments = initial.segments if initial else []
        start = initial.position if initial else 0
        # What the recorded job took as well stays in its place: under the recorded settings,
        # nothing changes. Ranges of addresses do not: this job may map more than theirs had.
        self._addresses = RecordedAddresses(
            recording.events, start=start, held=segments, places_ranges=False
        )
        self._model = CachingAllocator(
            capacity.capacity_bytes,
            settings,
            limit_bytes=capacity.limit_bytes,
            version=version,
            addresses=self._addresses,
        )
        self._job = ReplayedJob(self._model, [] if anew else segments)
        recorded = _recorded_capacity(recording, capacity, version)
        self._calls = calls_of(recording, recorded, start=start)
        self._refusals = refusals(recording) if capacity.source == "varying" else {}
        self._next_call = 0
        self._peak: Moment | None = None
        self._peak_bytes = 0
        self._fragmentation = 0.0
        self._rounding_waste_bytes = 0
        self._oom: OutOfMemory | None = None
        self._end: End | None = None
        if anew:
            self._hold_again(segments, start)
        if self._model.reserved_bytes:
            self._note_peak(start)

    def to_end(self, progress: Progress | None) -> Prediction:
        """Make the calls, as far as it is known what they would have been."""
        self._advance(progress)
        prediction = self._prediction()
        if prediction.end is None or prediction.end.reason != "out_of_memory":
            return prediction
        return replace(prediction, oom=self._oom_with_need(progress))

    def _hold_again(self, segments: list[dict[str, Any]], start: int) -> None:
        """Ask for what was held before the first entry, in the order of its places."""
        try:
            for address, size_bytes, stream, pool_id, is_pending in held_blocks(segments):
                self._job.blocks[address] = self._model.malloc(size_bytes, stream, pool_id)
                if is_pending:
                    self._job.call(FREE_IN_USE, address, pool_id)
        except OutOfMemoryError as error:
            self._failed(start, error)
            self._end_at(start, "out_of_memory")

    def _advance(self, progress: Progress | None) -> None:
        """Make calls until the end."""
        entries, total = len(self._recording.events), len(self._calls)
        while self._next_call < total and self._end is None:
            self._make(self._next_call, min(self._next_call + STRIDE, total))
            if progress is not None:
                at = self._next_call
                progress(int(self._calls.events[at]) if at < total else entries, entries)

    def _make(self, start: int, stop: int) -> None:
        """Make some of the calls; the first whose outcome is not as recorded is the last."""
        malloc, call, blocks = self._model.malloc, self._job.call, self._job.blocks
        counters, addresses = self._model.counters, self._addresses
        refused = self._refusals
        taken = counters.num_device_alloc
        self._next_call = start
        for operation, event, address, size_bytes, stream, pool_id in self._calls.rows(start, stop):
            if operation in (MALLOC, OUT_OF_MEMORY):
                if event > addresses.next_event:
                    addresses.expect_nothing()
                    addresses.expect_until(event)
                if event in refused:
                    self._model.set_limit(refused[event])
                try:
                    block = malloc(size_bytes, stream, pool_id)
                except OutOfMemoryError as error:
                    self._failed(event, error)
                    if operation == MALLOC:
                        self._end_at(event, "out_of_memory")
                        return
                else:
                    if operation == OUT_OF_MEMORY:
                        self._end_at(event, "recorded_out_of_memory")
                        return
                    blocks[address] = block
                if event in refused:
                    self._model.set_limit(None)
                if counters.num_device_alloc != taken:
                    taken = counters.num_device_alloc
                    self._note_peak(event)
            else:
                call(operation, address, pool_id)
            self._next_call += 1

    def _note_peak(self, event: int) -> None:
        counters = self._model.counters.all
        reserved_bytes = counters.reserved_bytes.current
        if reserved_bytes > self._peak_bytes:
            self._peak_bytes = reserved_bytes
            self._peak = self._moment(event)
            self._fragmentation = 1 - counters.allocated_bytes.current / reserved_bytes
            self._rounding_waste_bytes = (
                counters.active_bytes.current - counters.requested_bytes.current
            )

    def _failed(self, event: int, error: OutOfMemoryError) -> None:
        if self._oom is None:
            moment = self._moment(event)
            self._oom = OutOfMemory(
                moment.event,
                moment.time_us,
                moment.step,
                requested_bytes=error.requested_bytes,
                segment_bytes=error.segment_bytes,
                reserved_bytes=error.reserved_bytes,
                allocated_bytes=error.allocated_bytes,
                allowed_bytes=error.allowed_bytes,
                needed_bytes=error.reserved_bytes + error.segment_bytes,
            )

    def _oom_with_need(self, progress: Progress | None) -> OutOfMemory | None:
        """Go on as if memory had no end from the failure on, to tell how much was needed."""
        if self._oom is None:
            return None
        self._refusals = {}
        self._model.set_limit(None)
        self._model.set_capacity(None)
        self._model.reset_peaks()
        self._end = None
        self._advance(progress)
        return replace(self._oom, needed_bytes=self._model.counters.all.reserved_bytes.peak)

    def _end_at(self, event: int, reason: Reason) -> None:
        self._end = End(self._moment(event), reason)

    def _moment(self, event: int) -> Moment:
        times_us = self._recording.events.times_us
        time_us = int(times_us[min(event, len(times_us) - 1)])
        return Moment(event, time_us, self._steps.at(time_us))

    def _prediction(self) -> Prediction:
        counters = self._model.counters
        return Prediction(
            settings=self._model.settings,
            version=self._model.version,
            capacity=self._capacity,
            events=len(self._recording.events),
            peak_reserved_bytes=counters.all.reserved_bytes.peak,
            peak_allocated_bytes=counters.all.allocated_bytes.peak,
            peak_active_bytes=counters.all.active_bytes.peak,
            peak=self._peak,
            fragmentation_at_peak=self._fragmentation,
            rounding_waste_at_peak_bytes=self._rounding_waste_bytes,
            device_allocs=counters.num_device_alloc,
            device_frees=counters.num_device_free,
            retries=counters.num_alloc_retries,
            ooms=counters.num_ooms,
            oom=self._oom,
            end=self._end,
            counters=self._model.memory_stats(),
        )


def _recorded_capacity(recording: Recording, predicted: Capacity, version: Version) -> Capacity:
    """What bound the recorded job, by which its own flushes are told from calls.

    What the prediction is given helps only where the recording alone shows no limit.
    """
    recorded = infer_capacity(recording, version=version)
    allowed_bytes = predicted.allowed_bytes
    if recorded.source != "unbounded" or allowed_bytes is None:
        return recorded
    return predicted if allowed_bytes >= recorded.lowest_bytes else recorded
