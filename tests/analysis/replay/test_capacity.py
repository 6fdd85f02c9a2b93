from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.capacity import (
    Capacity,
    bounded,
    given_capacity,
    may_be_collected,
    may_be_refused,
    most_granted,
    refusals,
    roundest,
    unbounded,
)
from vramscope_analysis.replay.flushes import flushes_of
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Snapshot

GIB = 1 << 30


def job_that_fails(
    *, limit_bytes: int | None = None, capacity_bytes: int | None = None
) -> RecordedJob:
    job = RecordedJob(limit_bytes=limit_bytes, capacity_bytes=capacity_bytes)
    kept = job.malloc(600 * MIB)
    job.free(job.malloc(300 * MIB))
    with pytest.raises(OutOfMemoryError):
        job.malloc(700 * MIB)
    job.free(kept)
    return job


def test_a_failure_bounds_from_above_and_the_peak_from_below() -> None:
    recording = job_that_fails(limit_bytes=1000 * MIB, capacity_bytes=80 * GIB).recording()

    capacity = bounded(recording)

    # 900 MiB were reserved; 900 + 700 MiB were refused at first, 600 + 700 MiB for good.
    assert capacity == Capacity(None, 1024 * MIB, 900 * MIB, 1300 * MIB, "inferred")
    assert capacity.allowed_bytes == 1024 * MIB


def test_a_device_that_had_no_more_was_the_bound_itself() -> None:
    capacity = bounded(job_that_fails(capacity_bytes=1000 * MIB).recording())

    # The failure says how much was left: 400 MiB beside 600 MiB.
    assert capacity == Capacity(1000 * MIB, None, 900 * MIB, 1300 * MIB, "inferred")


def test_a_fraction_in_the_settings_is_a_limit_whatever_the_device_had() -> None:
    plain = job_that_fails(capacity_bytes=1000 * MIB).plain()
    fraction = "per_process_memory_fraction:0.5"
    plain["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = fraction

    capacity = bounded(Recording.from_snapshot(Snapshot.from_plain(plain)))

    # As the memory of the device, it would be halved once more.
    assert capacity == Capacity(None, 1024 * MIB, 900 * MIB, 1300 * MIB, "inferred")


def test_of_several_measurements_the_least_that_explains_everything_counts() -> None:
    job = RecordedJob(capacity_bytes=1000 * MIB)
    job.malloc(500 * MIB)
    for _ in range(3):
        with pytest.raises(OutOfMemoryError):
            job.malloc(600 * MIB)
    plain = job.plain()
    failures = [entry for entry in job.entries if entry["action"] == "oom"]

    def measured(*free_mib: int) -> int | None:
        for entry, size_mib in zip(failures, free_mib, strict=True):
            entry["device_free"] = size_mib * MIB
        capacity = bounded(Recording.from_snapshot(Snapshot.from_plain(plain)))
        return None if capacity is None else capacity.capacity_bytes

    # 500 MiB were reserved; other processes took and gave back some of the rest.
    assert measured(80, 70, 90) == 570 * MIB
    assert measured(0, 70, 90) == 500 * MIB
    # What had more than was asked for was bound by a limit.
    assert measured(80, 70, 600) is None


def test_a_measurement_below_what_was_reserved_before_does_not_count() -> None:
    job = job_that_fails(capacity_bytes=1000 * MIB)
    next(entry for entry in job.entries if entry["action"] == "oom")["device_free"] = 299 * MIB

    # 600 + 299 MiB, but 900 MiB were reserved before.
    capacity = bounded(job.recording())
    assert capacity == Capacity(1024 * MIB, None, 900 * MIB, 1300 * MIB, "inferred")


def test_a_flush_that_a_request_may_have_needed_bounds_as_well() -> None:
    job = RecordedJob(limit_bytes=100 * MIB)
    job.free(job.malloc(30 * MIB))
    job.model.empty_cache()
    for size in (40, 70, 80):
        job.free(job.malloc(size * MIB))
    recording = job.recording()

    assert [may_be_refused(f, recording.peak_reserved_bytes) for f in flushes_of(recording)] == [
        False,  # 30 + 40 MiB fit later on
        True,  # 40 + 70 MiB
        True,  # 70 + 80 MiB
    ]
    assert bounded(recording) == Capacity(96 * MIB, None, 80 * MIB, 110 * MIB, "inferred")


def test_nothing_refused_and_nothing_flushed_bounds_nothing() -> None:
    job = RecordedJob()
    job.malloc(60 * MIB)

    assert bounded(job.recording()) is None
    capacity = unbounded(job.recording())
    assert (capacity.allowed_bytes, capacity.lowest_bytes) == (None, 60 * MIB)


def test_a_failure_below_the_peak_has_no_constant_cause() -> None:
    job = RecordedJob(capacity_bytes=2 * GIB)
    job.free(job.malloc(GIB))
    job.model.empty_cache()
    job.model.set_capacity(500 * MIB)  # another process took the rest
    with pytest.raises(OutOfMemoryError):
        job.malloc(600 * MIB)
    recording = job.recording()

    capacity = bounded(recording)

    assert capacity == Capacity(None, None, GIB, 600 * MIB, "varying")
    assert refusals(recording) == {len(job.entries) - 1: 600 * MIB - 1}


def test_garbage_collection_bounds_by_its_threshold() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.5)
    job = RecordedJob(settings, limit_bytes=128 * MIB)
    job.free(job.malloc(40 * MIB), job.malloc(30 * MIB))
    job.malloc(44 * MIB)
    recording = job.recording()

    (flush,) = flushes_of(recording)
    capacity = bounded(recording)

    assert may_be_collected(flush)
    assert capacity == Capacity(None, 128 * MIB, 70 * MIB, 140 * MIB, "inferred")
    assert not capacity.refuses(flush)
    assert capacity.collects(flush, 0.5)
    assert not capacity.collects(flush, 0.0)
    assert not Capacity(None, 140 * MIB, 0, None, "given").collects(flush, 0.5)


def recording_with_a_flush(stacks: tuple[str, str]) -> Recording:
    job = RecordedJob()
    job.stack = stacks[0]
    job.free(job.malloc(40 * MIB))
    job.model.empty_cache()
    job.stack = stacks[1]
    job.malloc(60 * MIB)
    return job.recording()


def test_a_request_that_fits_is_not_behind_a_flush() -> None:
    (flush,) = flushes_of(recording_with_a_flush(("", "")))

    def refuses(allowed: int, asked: frozenset[int] = frozenset()) -> bool:
        return Capacity(allowed, None, 0, None, "given", asked).refuses(flush)

    assert refuses(99 * MIB)
    assert not refuses(100 * MIB)
    assert not refuses(99 * MIB, frozenset([flush.first]))


def test_another_stack_shows_that_somebody_asked() -> None:
    (flush,) = flushes_of(recording_with_a_flush(("evaluate", "forward")))

    assert not Capacity(50 * MIB, None, 0, None, "given").refuses(flush)
    assert not may_be_refused(flush, 0)


def test_what_is_given_is_taken() -> None:
    recording = job_that_fails(limit_bytes=1000 * MIB).recording()

    capacity = given_capacity(recording, 80 * GIB, 1000 * MIB)

    assert (capacity.source, capacity.allowed_bytes) == ("given", 1000 * MIB)
    assert (capacity.lowest_bytes, capacity.highest_bytes) == (900 * MIB, 1300 * MIB)


def test_the_roundest_size_is_taken() -> None:
    assert roundest(3010 * MIB, 3122 * MIB) == 3 * GIB
    assert roundest(1, 1 << 40) == 1 << 39
    assert roundest(7, 8) == 7
    for lowest, highest in ((8, 8), (0, 5)):
        with pytest.raises(ValueError, match=rf"expected a range .*, got \[{lowest}, {highest}\)"):
            roundest(lowest, highest)


@given(st.integers(1, 1 << 48), st.integers(1, 1 << 48))
def test_the_roundest_size_lies_in_its_range(lowest: int, width: int) -> None:
    size = roundest(lowest, lowest + width)

    assert lowest <= size < lowest + width
    # Every multiple of a higher power of two lies outside.
    rounder = 2 * (size & -size)
    assert -(-lowest // rounder) * rounder >= lowest + width


def test_pages_may_go_beyond_a_limit() -> None:
    settings = AllocatorSettings(expandable_segments=True)
    job = RecordedJob(settings, limit_bytes=64 * MIB, capacity_bytes=80 * GIB)
    job.malloc(30 * MIB)
    job.malloc(21 * MIB)
    recording = job.recording()

    # 40 MiB are mapped for the first request; 22 MiB more are within the limit, 40 MiB mapped.
    assert recording.peak_reserved_bytes == 60 * MIB
    assert most_granted(recording) == (40 + 22) * MIB


def test_only_the_first_mapping_of_a_request_was_let_through() -> None:
    job = RecordedJob(AllocatorSettings(expandable_segments=True))
    _first, second, third = (job.malloc(20 * MIB) for _page in range(3))
    job.free(second)
    job.model.empty_cache()
    job.free(third)
    job.malloc(50 * MIB)
    assert [e["action"] for e in job.entries[-3:]] == ["segment_map", "segment_map", "alloc"]

    # 40 MiB were mapped when the 50 MiB came, 60 MiB when the rest of them was mapped.
    assert most_granted(job.recording()) == (40 + 50) * MIB


def test_without_pages_what_was_granted_is_what_was_reserved() -> None:
    recording = job_that_fails(limit_bytes=1000 * MIB).recording()

    assert most_granted(recording) == recording.peak_reserved_bytes == 900 * MIB


def test_the_device_is_asked_for_whole_pages() -> None:
    job = RecordedJob(AllocatorSettings(expandable_segments=True), capacity_bytes=85 * MIB)
    job.malloc(40 * MIB)
    kept = job.malloc(20 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(22 * MIB, stream=7)  # two pages: 25 MiB would be left
    job.free(kept)
    job.malloc(20 * MIB, stream=7)
    job.malloc(20 * MIB)

    # 60 + 22 MiB would have fitted, 60 + 40 MiB did not.
    capacity = bounded(job.recording())
    assert capacity == Capacity(85 * MIB, None, 80 * MIB, 100 * MIB, "inferred")
