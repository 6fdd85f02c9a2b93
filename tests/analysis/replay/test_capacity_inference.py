from __future__ import annotations

import gc
import weakref

import pytest

from tests.support.allocator_traces import load_trace
from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.capacity_inference import infer_capacity, search_capacity

GIB = 1 << 30


@pytest.mark.parametrize("name", ["oom__default", "oom__split128"])
def test_the_limit_of_a_real_job_is_found(name: str) -> None:
    capacity = infer_capacity(load_trace(name).recording)

    assert (capacity.limit_bytes, capacity.capacity_bytes) == (3 * GIB, None)
    assert capacity.source == "inferred"


@pytest.mark.parametrize("name", ["conv__default", "conv__expandable", "varlen__default"])
def test_a_real_job_that_was_refused_nothing_has_none(name: str) -> None:
    # cuDNN's search empties the cache again and again in the conv ones.
    assert infer_capacity(load_trace(name).recording).source == "unbounded"


def test_what_is_given_is_not_inferred() -> None:
    recording = load_trace("oom__default").recording

    capacity = infer_capacity(recording, limit_bytes=5 * GIB)

    assert (capacity.source, capacity.allowed_bytes) == ("given", 5 * GIB)


def job_that_retries(stack: str = "") -> RecordedJob:
    job = RecordedJob(limit_bytes=1 * GIB)
    job.stack = stack
    for size in (300, 500, 700):
        job.free(job.malloc(size * MIB))
    return job


def test_flushes_without_a_failure_are_believed_if_the_model_makes_them_too() -> None:
    job = job_that_retries()
    for size in (400, 600, 800, 500, 900):
        kept = job.malloc(size * MIB)
        job.free(kept)
    retries = job.model.counters.num_alloc_retries
    assert retries > 1

    capacity = infer_capacity(job.recording())

    assert capacity.source == "inferred"
    assert capacity.allowed_bytes == 1 * GIB


def test_flushes_that_no_limit_explains_were_asked_for() -> None:
    job = RecordedJob()
    for size in (300, 500, 700):
        job.free(job.malloc(size * MIB))
        job.model.empty_cache()
        # What was cached would have served this: no request flushes what it could use.
        job.free(job.malloc((size - 8) * MIB))

    assert infer_capacity(job.recording()).source == "unbounded"


def test_one_flush_alone_proves_nothing_without_a_stack() -> None:
    assert infer_capacity(job_that_retries().recording()).source == "unbounded"
    assert infer_capacity(job_that_retries("forward").recording()).source == "inferred"


def test_what_was_inferred_is_remembered_while_the_recording_lives() -> None:
    recording = job_that_retries("forward").recording()
    assert infer_capacity(recording) is infer_capacity(recording)
    found = search_capacity(recording, infer_capacity(recording), recording.version)
    assert infer_capacity(recording) is found

    gone = weakref.ref(recording)
    del recording
    gc.collect()

    assert gone() is None


def test_one_flush_is_believed_if_nothing_else_explains_it() -> None:
    job = RecordedJob(limit_bytes=45 * MIB)
    job.malloc(6 * MIB)
    waiting, other = job.malloc(9 * MIB), job.malloc(10 * MIB, stream=7)
    job.model.record_stream(waiting, 5)
    job.free(waiting, other)
    # The flush waits for the block of 9 MiB, but nobody looks for one again. After a call of
    # empty_cache it would have served.
    job.malloc(9 * MIB)

    capacity = infer_capacity(job.recording())

    assert capacity.source == "inferred"
    assert capacity.allowed_bytes is not None
    assert 40 * MIB <= capacity.allowed_bytes < 50 * MIB


THRESHOLD = AllocatorSettings(garbage_collection_threshold=0.5)


def test_a_threshold_without_a_limit_collects_nothing() -> None:
    job = RecordedJob(THRESHOLD, capacity_bytes=100 * MIB)
    job.free(job.malloc(30 * MIB), job.malloc(25 * MIB))
    job.malloc(35 * MIB)  # above half of the memory, and nothing is collected
    with pytest.raises(OutOfMemoryError):
        job.malloc(80 * MIB)

    capacity = infer_capacity(job.recording())

    assert (capacity.capacity_bytes, capacity.limit_bytes) == (100 * MIB, None)


def test_collected_garbage_shows_a_limit() -> None:
    job = RecordedJob(THRESHOLD, limit_bytes=100 * MIB, capacity_bytes=100 * MIB)
    job.free(job.malloc(30 * MIB), job.malloc(25 * MIB), job.malloc(512))
    job.malloc(35 * MIB)  # the small segment stays
    with pytest.raises(OutOfMemoryError):
        job.malloc(80 * MIB)

    capacity = infer_capacity(job.recording())

    assert capacity.capacity_bytes is None
    assert capacity.limit_bytes is not None


def test_calls_of_empty_cache_show_no_limit_whatever_the_threshold() -> None:
    job = RecordedJob(AllocatorSettings(garbage_collection_threshold=0.3))
    for size in (90, 96, 100):  # garbage collection would have given back the same
        job.free(job.malloc(size * MIB))
        job.model.empty_cache()
    job.malloc(104 * MIB)
    job.malloc(110 * MIB)  # no request before was refused

    assert infer_capacity(job.recording()).source == "unbounded"
