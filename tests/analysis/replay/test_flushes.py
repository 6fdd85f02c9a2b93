from __future__ import annotations

import pytest

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.flushes import (
    asked_of_device,
    flushes_of,
    immediate_frees,
    late_completions,
    reserved_before,
)


def job_that_flushes_for_a_request() -> RecordedJob:
    job = RecordedJob(limit_bytes=100 * MIB)
    job.stack = "forward"
    job.free(job.malloc(40 * MIB), job.malloc(12 * MIB))
    job.stack = "backward"
    job.malloc(60 * MIB)
    return job


def test_a_flush_says_what_was_held_and_what_was_asked_for() -> None:
    recording = job_that_flushes_for_a_request().recording()

    (flush,) = flushes_of(recording)

    assert (flush.begin, flush.first, flush.last, flush.cause) == (8, 8, 9, 11)
    assert flush.reserved_bytes == 52 * MIB
    assert flush.reserved_before_last_bytes == 40 * MIB
    assert flush.asked_bytes == 60 * MIB
    assert not flush.is_failure
    assert not flush.is_users


def test_a_flush_whose_stack_is_not_that_of_the_request_is_the_users() -> None:
    job = RecordedJob()
    job.free(job.malloc(40 * MIB))
    job.stack = "evaluate"
    job.model.empty_cache()
    job.stack = "forward"
    job.malloc(60 * MIB)

    (flush,) = flushes_of(job.recording())

    assert flush.asked_bytes == 60 * MIB
    assert flush.is_users


def test_a_stack_on_one_side_only_shows_nothing() -> None:
    job = RecordedJob()
    job.free(job.malloc(40 * MIB))
    job.model.empty_cache()
    job.stack = "forward"
    job.malloc(60 * MIB)

    (flush,) = flushes_of(job.recording())

    assert not flush.is_users


def test_a_flush_before_anything_that_needs_no_memory_is_the_users() -> None:
    job = RecordedJob()
    kept = job.malloc(30 * MIB)
    job.free(job.malloc(40 * MIB))
    job.model.empty_cache()
    job.free(kept)
    job.model.empty_cache()

    flushes = flushes_of(job.recording())

    assert [(f.asked_bytes, f.is_users) for f in flushes] == [(0, True), (0, True)]
    assert flushes[-1].cause == len(job.entries)


def test_a_failure_is_told_from_a_request_that_was_granted() -> None:
    job = job_that_flushes_for_a_request()
    job.free(job.malloc(30 * MIB))
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            job.malloc(50 * MIB)

    flushes = flushes_of(job.recording())

    assert [flush.is_failure for flush in flushes] == [False, True]
    assert flushes[-1].asked_bytes == 50 * MIB


def test_a_job_that_gives_nothing_back_has_no_flushes() -> None:
    job = RecordedJob()
    job.malloc(1)

    assert flushes_of(job.recording()) == []


def test_a_free_that_waits_is_told_from_one_that_does_not() -> None:
    job = RecordedJob()
    waits, goes = job.malloc(512), job.malloc(512)
    job.model.record_stream(waits, 5)
    job.free(waits, goes)
    job.model.complete_free(waits)

    recording = job.recording()

    # segment_alloc alloc alloc free_requested(waits) free_requested(goes) ... (waits)
    assert immediate_frees(recording).nonzero()[0].tolist() == [4]
    assert late_completions(recording).nonzero()[0].tolist() == [6]


def test_what_is_held_before_an_entry() -> None:
    recording = job_that_flushes_for_a_request().recording()

    assert [reserved_before(recording, event) // MIB for event in (0, 1, 8, 9, 10, 11)] == [
        0,
        40,
        52,
        40,
        0,
        60,
    ]
    assert asked_of_device(recording, 3) == 12 * MIB


def test_a_flush_that_waits_for_nobody_does_not_give_everything_back() -> None:
    job = RecordedJob(AllocatorSettings(garbage_collection_threshold=0.5), limit_bytes=100 * MIB)
    waiting, other = job.malloc(30 * MIB), job.malloc(25 * MIB)
    job.model.record_stream(waiting, 5)
    job.free(waiting, other)
    job.malloc(35 * MIB)  # collects the 25 MiB
    job.model.empty_cache()  # waits for the 30 MiB

    collected, asked_for = flushes_of(job.recording())

    assert (collected.is_collectable, collected.is_partial) == (True, True)
    assert (asked_for.is_collectable, asked_for.is_partial) == (True, False)


def test_garbage_collection_leaves_small_segments_and_pages() -> None:
    small = RecordedJob()
    small.free(small.malloc(30 * MIB), small.malloc(512))
    small.model.empty_cache()
    pages = RecordedJob(AllocatorSettings(expandable_segments=True))
    pages.free(pages.malloc(30 * MIB))
    pages.model.empty_cache()

    for job in (small, pages):
        (flush,) = flushes_of(job.recording())
        assert not flush.is_collectable


def test_what_would_have_served_a_failure_was_given_back_for_a_user() -> None:
    def asked_for(size_mib: int, stream: int = 0) -> bool:
        job = RecordedJob(capacity_bytes=40 * MIB)
        job.malloc(24 * MIB, stream=3)
        job.free(job.malloc(12 * MIB))
        job.model.empty_cache()
        job.model.set_capacity(24 * MIB)  # another process took the rest
        with pytest.raises(OutOfMemoryError):
            job.malloc(size_mib * MIB, stream)
        (flush,) = flushes_of(job.recording())
        assert flush.is_failure
        return flush.is_users

    assert asked_for(12)
    assert not asked_for(14)
    assert not asked_for(12, stream=3)
    # A small request looks for small blocks only.
    assert not asked_for(1)


def test_a_block_that_a_failure_waited_for_may_go_back_with_its_flush() -> None:
    job = RecordedJob(capacity_bytes=40 * MIB)
    waiting = job.malloc(12 * MIB)
    job.malloc(24 * MIB)
    job.model.record_stream(waiting, 5)
    job.free(waiting)
    job.malloc(512)
    job.model.set_capacity(28 * MIB)  # another process took the rest
    with pytest.raises(OutOfMemoryError):
        job.malloc(12 * MIB)

    (flush,) = flushes_of(job.recording())

    assert not flush.is_users
