from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.recorded_job import MIB, START_US, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.replay.steps import Annotation
from vramscope_analysis.snapshot import Action, Snapshot


def recording_of(plain: dict[str, Any], device: int | None = None) -> Recording:
    return Recording.from_snapshot(Snapshot.from_plain(plain), device)


def job() -> RecordedJob:
    job = RecordedJob(AllocatorSettings(max_split_size_bytes=64 * MIB))
    kept = job.malloc(3 * MIB)
    job.free(job.malloc(40 * MIB), kept)
    job.step()
    job.model.empty_cache()
    job.malloc(5000, stream=7)
    return job


def test_a_recording_has_the_columns_of_its_device() -> None:
    recording = job().recording()

    events = recording.events
    words = [Action(action).word for action in events.actions.tolist()]
    assert words[:4] == ["segment_alloc", "alloc", "segment_alloc", "alloc"]
    assert words[-4:] == ["segment_free", "segment_free", "segment_alloc", "alloc"]
    assert events.sizes[:4].tolist() == [20 * MIB, 3 * MIB, 40 * MIB, 40 * MIB]
    assert events.streams[-1] == 7
    assert events.times_us[0] == START_US
    assert events.pool_ids is None
    assert recording.settings.max_split_size_bytes == 64 * MIB
    assert [s["total_size"] for s in recording.segments] == [2 * MIB]
    assert "frames" not in recording.segments[0]
    assert [a.stage for a in recording.annotations] == ["START", "END"]


def test_what_is_reserved_follows_from_the_entries() -> None:
    recording = job().recording()

    assert recording.events.segment_events.tolist() == [0, 2, 8, 9, 10]
    assert recording.reserved_at_start_bytes == 0
    assert recording.starts_empty
    assert (recording.reserved_bytes // MIB).tolist() == [20, 60, 40, 0, 2]
    assert recording.peak_reserved_bytes == 60 * MIB


def test_missing_entries_show_in_what_the_others_do_not_account_for() -> None:
    plain = job().plain()
    plain["device_traces"][0] = plain["device_traces"][0][3:]

    recording = recording_of(plain)

    assert recording.reserved_at_start_bytes == 60 * MIB
    assert not recording.starts_empty
    assert recording.peak_reserved_bytes == 60 * MIB


def test_the_device_with_most_entries_is_taken_unless_one_is_named() -> None:
    plain = job().plain()
    entries = plain["device_traces"][0]
    plain["device_traces"] = [entries[:2], entries, []]
    plain["segments"] = [{**segment, "device": 1} for segment in plain["segments"]]
    plain["external_annotations"] += [
        {"name": "elsewhere", "stage": "START", "device": 1, "time_us": 5}
    ]

    recording = recording_of(plain)

    assert (recording.device, len(recording.events), len(recording.segments)) == (1, 11 + 1, 1)
    assert recording.annotations == [Annotation("elsewhere", "START", 5)]
    assert len(recording_of(plain, 0).events) == 2
    assert recording_of(plain, 0).segments == []
    with pytest.raises(ValueError, match=r"expected a device with trace entries \(0, 1\), got 2"):
        recording_of(plain, 2)


def test_a_snapshot_without_history_is_refused() -> None:
    plain = job().plain()
    plain["device_traces"] = [[]]

    with pytest.raises(ValueError, match="expected a recorded history"):
        recording_of(plain)


def test_an_allocation_of_nothing_is_refused() -> None:
    plain = job().plain()
    plain["device_traces"][0][1]["size"] = 0

    with pytest.raises(ValueError, match="expected requests of at least 1 byte, got 0 at entry 1"):
        recording_of(plain)


def test_settings_that_no_allocator_has_are_refused_by_their_name() -> None:
    plain = job().plain()
    plain["allocator_settings"]["max_split_size"] = "all"

    with pytest.raises(ValueError, match="allocator_settings: expected a number"):
        recording_of(plain)


def test_a_trace_without_one_kind_of_entry_is_refused() -> None:
    plain = job().plain()
    entries = plain["device_traces"][0]
    plain["device_traces"][0] = [entry for entry in entries if entry["action"] != "alloc"]

    with pytest.raises(ValueError, match=r"without any alloc, .* record without skip_actions"):
        recording_of(plain)


def test_segments_freed_while_the_snapshot_was_taken_are_in_its_trace() -> None:
    plain = job().plain()
    plain["segments"] = []

    recording = recording_of(plain)

    assert recording.starts_empty
    assert recording.reserved_at_start_bytes == 0
    assert recording.peak_reserved_bytes == 60 * MIB


@pytest.mark.parametrize("change", [{"time_us": None}, {"time_us": "now"}, {"name": 5}])
def test_annotations_that_pytorch_never_writes_are_left_out(change: dict[str, Any]) -> None:
    plain = job().plain()
    start, end = plain["external_annotations"]
    plain["external_annotations"] = [start, {**end, **change}, {"stage": "END"}]

    assert [annotation.stage for annotation in recording_of(plain).annotations] == ["START"]


def without(plain: dict[str, Any], *keys: str) -> dict[str, Any]:
    for entry in plain["device_traces"][0]:
        for key in keys:
            entry.pop(key, None)
    return plain


def test_the_release_is_told_by_what_a_snapshot_has() -> None:
    plain = job().plain()
    assert recording_of(plain).versions == ((2, 10), (2, 11))

    newer = job().plain()
    for entry in newer["device_traces"][0]:
        entry["pool_id"] = (0, 0)
    assert recording_of(newer).versions == ((2, 12), (2, 12))
    newer["allocator_settings"]["max_round_threshold"] = 0
    assert recording_of(newer).versions == ((2, 13), (2, 13))
    newer["host_segments"] = []
    newer["host_traces"] = []
    assert recording_of(newer).version == (2, 14)

    older = without(plain, "user_metadata")
    assert recording_of(older).versions == ((2, 9), (2, 9))
    del older["allocator_settings"]["graph_capture_record_stream_reuse"]
    assert recording_of(older).versions == ((2, 8), (2, 8))
    assert recording_of(without(older, "compile_context")).versions == ((2, 5), (2, 7))
    del older["external_annotations"]
    assert recording_of(older).versions == ((2, 4), (2, 7))


def test_events_are_read_and_not_copied() -> None:
    snapshot = job().snapshot()

    recording = Recording.from_snapshot(snapshot)

    assert np.shares_memory(recording.events.sizes, snapshot.traces[0].size)
