from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.allocator_traces import TRACES, Trace, flatten, load_trace
from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.capacity import Capacity, unbounded
from vramscope_analysis.replay.capacity_inference import infer_capacity
from vramscope_analysis.replay.recorded_replay import RecordedReplay
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action, Snapshot

UNSEEN_CALLS = {
    # cuDNN's search ends with emptyCache. The last time there was nothing to give back: the call
    # is counted (69), but has no entry, so that the replay makes one less (68).
    "conv__default": {"num_sync_all_streams": 1},
}

GRAPH_ROW = 369
"""Entry before the first row of the job without an optimizer: each row, it replays its graph and
frees one tensor, which is three entries."""


def row_positions(name: str, trace: Trace) -> list[int]:
    """Before which entry the job read its counters, for each row.

    It did so when everything of the step was done: before memory is requested or given back
    after ``Optimizer.zero_grad``. The leaking job first makes the tensor that it keeps.
    """
    if name == "graphs__default":
        return [GRAPH_ROW + 3 * row for row in range(len(trace.steps))]
    recording = trace.recording
    ends_us = [
        annotation.time_us
        for annotation in recording.annotations
        if annotation.name.startswith("Optimizer.zero_grad#") and annotation.stage == "END"
    ]
    done = np.searchsorted(recording.events.times_us, ends_us[: len(trace.steps)])
    requests = np.flatnonzero(recording.events.actions == Action.ALLOC)
    if name == "leak__default":
        following = requests[np.searchsorted(requests, done[:-1])] + 1
    else:
        changes = np.union1d(requests, recording.events.segment_events)
        following = changes[np.searchsorted(changes, done[:-1])]
    # After the last step nothing is requested: what is done there is done in every step.
    last = done[-1] + (following[-1] - done[-2])
    return [*following.tolist(), int(last)]


@pytest.mark.parametrize("name", TRACES)
def test_a_real_job_is_replayed_to_the_byte(name: str) -> None:
    trace = load_trace(name)
    recording = trace.recording
    replay = RecordedReplay(recording, infer_capacity(recording))

    rows: list[dict[str, int]] = []
    for step, position in enumerate(row_positions(name, trace)):
        replay.advance(position)
        counters = {"step": step, **flatten(replay.model.memory_stats())}
        rows.append({column: counters[column] for column in trace.steps[0]})
    replay.advance()

    # The peaks among the counters are those of the whole run so far: nothing reset them.
    assert rows == trace.steps
    assert len(rows) >= 10
    comparison = replay.comparison
    assert comparison.first == []
    assert (comparison.segment_mismatches, comparison.block_mismatches) == (0, 0)
    assert (comparison.final_mismatches, replay.unknown_frees) == (0, 0)
    counters = flatten(replay.model.memory_stats())
    for counter, unseen in UNSEEN_CALLS.get(name, {}).items():
        counters[counter] += unseen
    assert counters == trace.final_stats
    assert len(counters) == 122
    assert without_frames(replay.model.segments()) == recording.segments


def without_frames(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **{key: value for key, value in segment.items() if key != "frames"},
            "blocks": [
                {key: value for key, value in block.items() if key != "frames"}
                for block in segment["blocks"]
            ],
        }
        for segment in segments
    ]


def replayed(recording: Recording, capacity: Capacity | None = None) -> RecordedReplay:
    replay = RecordedReplay(recording, capacity if capacity else unbounded(recording))
    replay.advance()
    return replay


def test_the_state_at_any_moment_can_be_seen() -> None:
    job = RecordedJob()
    job.free(job.malloc(30 * MIB))
    job.malloc(40 * MIB)
    replay = RecordedReplay(job.recording(), unbounded(job.recording()))

    held = []
    for position in range(len(job.entries) + 1):
        replay.advance(position)
        held.append(replay.model.allocated_bytes // MIB)

    # segment_alloc alloc free_requested free_completed segment_alloc alloc
    assert held == [0, 0, 30, 0, 0, 0, 40]


def test_a_block_that_is_elsewhere_is_one_mismatch_and_what_follows_goes_on() -> None:
    job = RecordedJob()
    first, second = job.malloc(3 * MIB), job.malloc(3 * MIB)
    address = second.address
    job.free(first, second)
    job.malloc(40 * MIB)
    plain = job.plain()
    for entry in plain["device_traces"][0]:  # of the second block, all of them
        if entry["addr"] == address:
            entry["addr"] += 512

    replay = replayed(Recording.from_snapshot(Snapshot.from_plain(plain)))

    comparison = replay.comparison
    assert (comparison.block_mismatches, comparison.segment_mismatches) == (1, 0)
    (mismatch,) = comparison.first
    assert (mismatch.event, mismatch.kind) == (2, "block")
    assert mismatch.expected == f"a block at {address + 512:#x}"
    assert mismatch.got == f"a block at {address:#x}"
    assert replay.unknown_frees == 0


def test_a_segment_that_is_not_asked_for_is_a_mismatch() -> None:
    job = RecordedJob()
    job.malloc(3 * MIB)
    plain = job.plain()
    extra = {**plain["device_traces"][0][0], "addr": 1 << 40}
    plain["device_traces"][0].insert(1, extra)
    recording = Recording.from_snapshot(Snapshot.from_plain(plain))

    comparison = replayed(recording).comparison

    assert comparison.segment_mismatches == 1
    assert comparison.first[0].got == "nothing"
    assert comparison.first_segments is not None
    assert comparison.first_segments.event == 2


def test_entries_after_the_last_call_are_compared_too() -> None:
    job = RecordedJob()
    job.malloc(3 * MIB)
    plain = job.plain()
    plain["device_traces"][0].append({**plain["device_traces"][0][0], "addr": 1 << 40})

    replay = replayed(Recording.from_snapshot(Snapshot.from_plain(plain)))
    assert replay.comparison.segment_mismatches == 1
    replay.comparison.final_mismatches = 0
    replay.advance()

    assert (replay.comparison.segment_mismatches, replay.comparison.final_mismatches) == (1, 0)


def failing_job() -> RecordedJob:
    job = RecordedJob(limit_bytes=100 * MIB)
    job.malloc(60 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(50 * MIB)
    job.malloc(40 * MIB)
    return job


def test_a_failure_is_replayed_as_one() -> None:
    recording = failing_job().recording()

    replay = replayed(recording, infer_capacity(recording))

    assert replay.misplaced == 0
    assert replay.model.counters.num_ooms == 1


def test_a_failure_that_does_not_happen_again_is_a_mismatch() -> None:
    replay = replayed(failing_job().recording())

    # Its segment comes and stays: the block is given back at once, but the memory is cached.
    (block, *_others) = replay.comparison.first
    assert block.expected == "out of memory"
    assert replay.comparison.segment_mismatches >= 1
    assert replay.model.allocated_bytes == 100 * MIB


def test_a_failure_that_was_none_is_a_mismatch() -> None:
    recording = failing_job().recording()

    replay = replayed(recording, Capacity(80 * MIB, None, 0, None, "given"))

    assert [m.got for m in replay.comparison.first if m.kind == "block"] == ["out of memory"]
    assert replay.comparison.segment_mismatches == 1


def test_what_other_processes_took_is_taken_from_each_failure() -> None:
    job = RecordedJob(capacity_bytes=1000 * MIB)
    job.free(job.malloc(900 * MIB))
    job.model.empty_cache()
    job.free(job.malloc(30 * MIB))
    job.model.set_capacity(100 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(200 * MIB)
    job.model.set_capacity(1000 * MIB)
    job.malloc(300 * MIB)
    recording = job.recording()

    capacity = infer_capacity(recording)
    replay = replayed(recording, capacity)

    assert capacity.source == "varying"
    assert (replay.misplaced, replay.model.counters.num_ooms) == (0, 1)


def test_frees_that_waited_for_other_streams_are_completed_where_they_were() -> None:
    job = RecordedJob(limit_bytes=100 * MIB)
    pending, other = job.malloc(60 * MIB), job.malloc(30 * MIB)
    job.model.record_stream(pending, 5)
    job.free(pending, other)
    # The 60 MiB would serve this, were they free: they become so in the flush.
    job.malloc(50 * MIB)
    again = job.malloc(20 * MIB)
    job.model.record_stream(again, 5)
    job.free(again)
    job.malloc(512)
    job.model.complete_free(again)
    recording = job.recording()

    replay = replayed(recording, Capacity(None, 100 * MIB, 0, None, "given"))

    assert replay.misplaced == 0
    assert flatten(replay.model.memory_stats()) == flatten(job.model.memory_stats())


def test_expandable_segments_are_mapped_where_they_were() -> None:
    job = RecordedJob(AllocatorSettings(expandable_segments=True))
    job.free(job.malloc(70 * MIB), job.malloc(512))
    job.model.empty_cache()
    job.malloc(30 * MIB, stream=3)
    plain = job.plain()
    moved = 1 << 44
    for entry in (*plain["device_traces"][0], *plain["segments"]):
        entry["addr" if "addr" in entry else "address"] += moved
        for block in entry.get("blocks", ()):
            block["address"] += moved
    recording = Recording.from_snapshot(Snapshot.from_plain(plain))
    words = {Action(action).word for action in recording.events.actions.tolist()}
    assert {"segment_map", "segment_unmap"} <= words

    replay = replayed(recording)

    assert (replay.misplaced, replay.comparison.final_mismatches) == (0, 0)


def test_progress_counts_entries() -> None:
    job = failing_job()
    recording = job.recording()
    seen: list[tuple[int, int]] = []

    RecordedReplay(recording, infer_capacity(recording)).advance(
        progress=lambda done, total: seen.append((done, total))
    )

    assert seen == [(len(job.entries), len(job.entries))]
