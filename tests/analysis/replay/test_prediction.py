from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.allocator_traces import FOLDER, load_trace
from tests.support.made_recordings import cut
from tests.support.recorded_job import MIB, START_US, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.prediction import predict
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Snapshot

GIB = 1 << 30


@pytest.mark.parametrize("other", ["default", "expandable", "split128", "pow2_8", "gc60"])
def test_real_runs_under_other_settings_are_predicted_exactly(other: str) -> None:
    measured = load_trace(f"varlen__{other}")

    prediction = predict(load_trace("varlen__default").recording, measured.recording.settings)

    stats = measured.final_stats
    assert prediction.peak_reserved_bytes == stats["reserved_bytes.all.peak"]
    assert prediction.peak_allocated_bytes == stats["allocated_bytes.all.peak"]
    assert prediction.peak_active_bytes == stats["active_bytes.all.peak"]
    assert (prediction.device_allocs, prediction.device_frees) == (
        stats["num_device_alloc"],
        stats["num_device_free"],
    )
    assert (prediction.retries, prediction.ooms) == (0, 0)
    assert (prediction.oom, prediction.end) == (None, None)
    assert prediction.peak is not None
    assert prediction.peak.step is not None
    assert 0 < prediction.fragmentation_at_peak < 1


@pytest.mark.parametrize("name", ["conv__default", "graphs__default", "oom__split128"])
def test_the_recorded_settings_predict_the_recorded_run(name: str) -> None:
    trace = load_trace(name)

    prediction = predict(trace.recording, trace.recording.settings)

    for predicted, counter in (
        (prediction.peak_reserved_bytes, "reserved_bytes.all.peak"),
        (prediction.peak_allocated_bytes, "allocated_bytes.all.peak"),
        (prediction.device_allocs, "num_device_alloc"),
        (prediction.device_frees, "num_device_free"),
        (prediction.retries, "num_alloc_retries"),
        (prediction.ooms, "num_ooms"),
    ):
        assert predicted == trace.final_stats[counter]


def job_beside_others() -> RecordedJob:
    """Another process takes most of the device in the middle, and gives it back."""
    job = RecordedJob(capacity_bytes=2 * GIB)
    job.free(job.malloc(GIB))
    job.model.empty_cache()
    job.free(job.malloc(100 * MIB), job.malloc(150 * MIB))
    job.model.set_capacity(500 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(600 * MIB)
    job.model.set_capacity(2 * GIB)
    job.malloc(800 * MIB)
    return job


def test_a_failure_that_no_constant_limit_explains_is_predicted_too() -> None:
    job = job_beside_others()
    recording = job.recording()

    prediction = predict(recording, recording.settings)

    assert prediction.capacity.source == "varying"
    failed = next(at for at, entry in enumerate(job.entries) if entry["action"] == "oom")
    assert prediction.oom is not None
    assert prediction.oom.event == failed
    assert prediction.oom.needed_bytes == 600 * MIB
    assert (prediction.ooms, prediction.retries, prediction.end) == (1, 1, None)
    assert prediction.peak_reserved_bytes == GIB
    assert prediction.counters == job.model.memory_stats()


def test_what_was_refused_once_binds_other_settings_at_that_moment_only() -> None:
    job = job_beside_others()

    prediction = predict(job.recording(), AllocatorSettings(expandable_segments=True))

    assert prediction.oom is not None
    assert prediction.oom.allowed_bytes == 600 * MIB - 1
    # The request of 800 MiB after it is granted.
    assert (prediction.ooms, prediction.end) == (1, None)
    assert prediction.peak_reserved_bytes >= 800 * MIB


def recorded_failure(name: str) -> tuple[int, str]:
    """Step and message of a real failure."""
    rows = json.loads((FOLDER / f"{name}.json").read_text())["steps"]
    (_, step, message) = next(row for row in rows if row[0] == "oom")
    return step, message


@pytest.mark.parametrize("recorded", ["oom__default", "oom__split128"])
def test_a_real_failure_is_predicted_in_its_step(recorded: str) -> None:
    real = load_trace("oom__default")
    step, message = recorded_failure("oom__default")
    assert step == 31

    prediction = predict(load_trace(recorded).recording, real.recording.settings)

    oom = prediction.oom
    assert oom is not None
    assert oom.step == step
    assert f"Tried to allocate {oom.segment_bytes / MIB:.2f} MiB" in message
    assert f"{oom.allowed_bytes / GIB:.2f} GiB allowed" in message
    assert f"{oom.allocated_bytes / GIB:.2f} GiB is allocated by PyTorch" in message
    cached = (oom.reserved_bytes - oom.allocated_bytes) / MIB
    assert f"{cached:.2f} MiB is reserved by PyTorch but unallocated" in message
    assert oom.requested_bytes == 206848000
    assert prediction.peak_reserved_bytes == real.final_stats["reserved_bytes.all.peak"]
    assert prediction.retries == real.final_stats["num_alloc_retries"]
    if recorded == "oom__default":
        # It failed there as well: what came after is known.
        assert prediction.end is None
        assert oom.needed_bytes == oom.reserved_bytes + oom.segment_bytes
    else:
        assert prediction.end is not None
        assert (prediction.end.reason, prediction.end.at.event) == ("out_of_memory", oom.event)
        assert oom.needed_bytes > 3 * GIB


def test_a_real_failure_that_other_settings_avoid_ends_what_is_known() -> None:
    recording = load_trace("oom__default").recording
    other = load_trace("oom__split128")

    prediction = predict(recording, other.recording.settings)

    assert prediction.oom is None
    assert prediction.end is not None
    assert prediction.end.reason == "recorded_out_of_memory"
    assert prediction.end.at.step == 31
    # The real run reached its peak before that.
    assert prediction.peak_reserved_bytes == other.final_stats["reserved_bytes.all.peak"]


def growing_job(limit_bytes: int | None = None) -> RecordedJob:
    job = RecordedJob(limit_bytes=limit_bytes)
    for size in (40, 60, 80):
        job.free(job.malloc(size * MIB))
        job.step()
    job.malloc(90 * MIB - 300)
    return job


def test_the_moment_of_the_peak_is_told() -> None:
    prediction = predict(growing_job().recording(), AllocatorSettings())

    # 40, 60 and 80 MiB are cached when the 90 MiB come.
    assert prediction.peak_reserved_bytes == 270 * MIB
    assert prediction.peak is not None
    assert (prediction.peak.event, prediction.peak.step) == (13, 3)
    assert prediction.peak.time_us == START_US + 13
    assert prediction.fragmentation_at_peak == pytest.approx(1 - 90 / 270)
    assert prediction.rounding_waste_at_peak_bytes == 300
    assert (prediction.device_allocs, prediction.device_frees, prediction.retries) == (4, 0, 0)


def test_less_memory_makes_the_job_retry_or_fail() -> None:
    recording = growing_job().recording()

    retries = predict(recording, AllocatorSettings(), limit_bytes=100 * MIB)
    fails = predict(recording, AllocatorSettings(), capacity_bytes=85 * MIB)

    assert (retries.retries, retries.oom, retries.peak_reserved_bytes) == (2, None, 100 * MIB)
    assert retries.capacity.source == "given"
    assert fails.oom is not None
    assert (fails.oom.event, fails.oom.step, fails.oom.requested_bytes) == (13, 3, 90 * MIB - 300)
    assert (fails.oom.reserved_bytes, fails.oom.allowed_bytes) == (0, 85 * MIB)
    assert fails.oom.needed_bytes == 90 * MIB
    assert fails.peak_reserved_bytes == 80 * MIB
    assert fails.ooms == 1


def test_a_flush_that_only_the_recorded_job_needed_is_left_out() -> None:
    job = growing_job(limit_bytes=100 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(101 * MIB)
    recording = job.recording()

    recorded = predict(recording, AllocatorSettings())
    lifted = predict(recording, AllocatorSettings(), limit_bytes=GIB)

    assert (recorded.peak_reserved_bytes, recorded.retries, recorded.ooms) == (100 * MIB, 3, 1)
    assert (lifted.peak_reserved_bytes, lifted.retries) == ((270 + 102) * MIB, 0)
    assert lifted.end is not None
    assert lifted.end.reason == "recorded_out_of_memory"


def test_the_first_of_several_failures_is_told() -> None:
    job = growing_job(limit_bytes=100 * MIB)
    for size in (101, 102):
        with pytest.raises(OutOfMemoryError):
            job.malloc(size * MIB)

    prediction = predict(job.recording(), AllocatorSettings())

    assert prediction.oom is not None
    assert prediction.oom.requested_bytes == 101 * MIB
    assert prediction.ooms == 2


def test_a_peak_that_comes_again_is_told_where_it_came_first() -> None:
    job = RecordedJob()
    for _turn in range(2):
        job.free(job.malloc(30 * MIB))
        job.model.empty_cache()

    prediction = predict(job.recording(), AllocatorSettings())

    assert prediction.peak is not None
    assert prediction.peak.event == 1


def test_calls_of_empty_cache_are_made_again() -> None:
    job = RecordedJob()
    job.free(job.malloc(70 * MIB))
    job.model.empty_cache()
    job.malloc(512)
    job.malloc(60 * MIB)

    prediction = predict(job.recording(), AllocatorSettings(expandable_segments=True))

    assert prediction.peak_reserved_bytes == 80 * MIB  # four pages of 20 MiB
    assert prediction.device_frees == 1


def test_frees_wait_for_other_streams_as_they_did() -> None:
    job = RecordedJob()
    block = job.malloc(40 * MIB)
    job.model.record_stream(block, 5)
    job.free(block)
    job.malloc(40 * MIB)
    job.model.complete_free(block)

    prediction = predict(job.recording(), AllocatorSettings(expandable_segments=True))

    assert prediction.peak_active_bytes == 80 * MIB
    assert prediction.peak_allocated_bytes == 40 * MIB


def test_a_recording_without_its_start_is_predicted_from_what_is_known() -> None:
    job = growing_job()
    plain = job.plain()
    plain["device_traces"][0] = plain["device_traces"][0][4:]

    prediction = predict(Recording.from_snapshot(Snapshot.from_plain(plain)), AllocatorSettings())

    assert prediction.peak_reserved_bytes == 270 * MIB
    assert prediction.peak_allocated_bytes == 90 * MIB


def test_progress_counts_entries() -> None:
    recording = growing_job().recording()
    seen: list[tuple[int, int]] = []

    predict(recording, AllocatorSettings(), progress=lambda *pair: seen.append(pair))

    assert seen == [(len(recording.events), len(recording.events))]


def test_a_version_that_is_not_modelled_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a torch version from 2\.4"):
        predict(growing_job().recording(), AllocatorSettings(), version=(2, 3))


def test_settings_are_those_asked_for() -> None:
    settings = replace(AllocatorSettings(), max_split_size_bytes=64 * MIB)

    prediction = predict(growing_job().recording(), settings, version=(2, 12))

    assert (prediction.settings, prediction.version) == (settings, (2, 12))
    assert prediction.counters["max_split_size"] == 64 * MIB


def test_collected_garbage_is_not_collected_again_without_the_limit() -> None:
    job = RecordedJob(AllocatorSettings(garbage_collection_threshold=0.5), limit_bytes=128 * MIB)
    for size in (30, 35, 40, 45, 50):
        job.free(job.malloc(size * MIB))
    recording = job.recording()
    assert job.model.counters.num_device_free > 0

    recorded = predict(recording, recording.settings)
    lifted = predict(recording, recording.settings, capacity_bytes=80 * GIB)

    assert recorded.device_frees == job.model.counters.num_device_free
    assert (lifted.device_frees, lifted.peak_reserved_bytes) == (0, 202 * MIB)


@pytest.mark.parametrize("part", [0.1, 0.5])
def test_a_window_from_the_middle_tells_what_a_new_start_would_give(part: float) -> None:
    # The same job really ran with these settings from its start on.
    whole = load_trace("varlen__default").recording
    window = cut(whole, int(part * len(whole.events)))
    settings = AllocatorSettings(expandable_segments=True)
    really = load_trace("varlen__expandable").final_stats["reserved_bytes.all.peak"]

    anew = predict(window, settings, anew=True)

    assert anew.peak_reserved_bytes == pytest.approx(really, rel=0.01)
    # A change while the job runs leaves the segments that it had as they are.
    assert predict(window, settings).peak_reserved_bytes > 1.1 * really


def test_anew_is_the_same_where_the_start_was_recorded() -> None:
    recording = load_trace("fixed__default").recording
    settings = AllocatorSettings(expandable_segments=True)
    assert predict(recording, settings, anew=True) == predict(recording, settings)


def test_a_new_start_that_does_not_even_hold_what_was_held_fails_at_once() -> None:
    plain = growing_job().plain()
    plain["device_traces"][0] = plain["device_traces"][0][4:]
    window = Recording.from_snapshot(Snapshot.from_plain(plain))
    small = predict(window, AllocatorSettings(), capacity_bytes=32 * MIB, anew=True)
    assert small.end is not None
    assert (small.end.reason, small.ooms) == ("out_of_memory", 1)
