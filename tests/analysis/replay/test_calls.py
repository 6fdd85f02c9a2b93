from __future__ import annotations

import numpy as np
import pytest

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, OutOfMemoryError
from vramscope_analysis.replay.calls import (
    CHUNK,
    COMPLETE_FREE,
    EMPTY_CACHE,
    FREE,
    FREE_IN_USE,
    MALLOC,
    OUT_OF_MEMORY,
    RELEASE_POOL,
    Calls,
    calls_of,
)
from vramscope_analysis.replay.capacity import Capacity, unbounded
from vramscope_analysis.replay.recording import Recording

LIMIT = Capacity(None, 100 * MIB, 0, None, "given")
GRAPH = (1, 0)


def operations(recording: Recording, capacity: Capacity | None = None) -> list[int]:
    calls = calls_of(recording, capacity if capacity else unbounded(recording))
    assert (np.diff(calls.events) >= 0).all()
    operations: list[int] = calls.operations.tolist()
    return operations


def test_segments_are_not_called_for() -> None:
    job = RecordedJob()
    block = job.malloc(3 * MIB, stream=7)
    job.free(block)

    calls = calls_of(job.recording(), unbounded(job.recording()))

    assert list(calls.rows(0, len(calls))) == [
        (MALLOC, 1, block.address, 3 * MIB, 7, None),
        (FREE, 2, block.address, 3 * MIB, 7, None),
    ]
    assert [calls.until(event) for event in (0, 1, 2, 3, 9)] == [0, 0, 1, 2, 2]


def test_a_free_that_waits_is_two_calls() -> None:
    job = RecordedJob()
    block, other = job.malloc(512), job.malloc(512)
    job.model.record_stream(block, 5)
    job.free(block, other)
    job.model.complete_free(block)

    assert operations(job.recording()) == [MALLOC, MALLOC, FREE_IN_USE, FREE, COMPLETE_FREE]


def test_a_flush_that_a_request_needed_is_no_call() -> None:
    job = RecordedJob(limit_bytes=100 * MIB)
    job.free(job.malloc(60 * MIB))
    job.malloc(70 * MIB)
    recording = job.recording()

    assert operations(recording, LIMIT) == [MALLOC, FREE, MALLOC]
    assert operations(recording) == [MALLOC, FREE, EMPTY_CACHE, MALLOC]


def test_collected_garbage_is_no_call() -> None:
    job = RecordedJob(AllocatorSettings(garbage_collection_threshold=0.5), limit_bytes=100 * MIB)
    job.free(job.malloc(30 * MIB), job.malloc(25 * MIB))
    job.malloc(35 * MIB)
    recording = job.recording()
    assert [entry["action"] for entry in job.entries][8:10] == ["segment_free", "segment_free"]

    assert operations(recording, LIMIT) == [MALLOC, MALLOC, FREE, FREE, MALLOC]


def test_a_failure_is_a_call_with_the_size_that_its_entry_has() -> None:
    job = RecordedJob(limit_bytes=100 * MIB)
    with pytest.raises(OutOfMemoryError):
        job.malloc(101 * MIB + 7)
    recording = job.recording()

    ((operation, _event, _address, size_bytes, _stream, _pool),) = calls_of(recording, LIMIT).rows(
        0, 1
    )

    assert (operation, size_bytes) == (OUT_OF_MEMORY, 101 * MIB + 512)


def test_frees_that_a_request_waited_for_are_completed_after_it() -> None:
    job = RecordedJob(limit_bytes=100 * MIB)
    pending, other = job.malloc(60 * MIB), job.malloc(30 * MIB)
    job.model.record_stream(pending, 5)
    job.free(pending, other)
    job.malloc(50 * MIB)
    recording = job.recording()
    assert [entry["action"] for entry in job.entries][7:] == [
        "free_completed",
        "segment_free",
        "segment_free",
        "segment_alloc",
        "alloc",
    ]

    before = [MALLOC, MALLOC, FREE_IN_USE, FREE]
    # Completed before, the 60 MiB would have served the request.
    assert operations(recording, LIMIT) == [*before, MALLOC, COMPLETE_FREE]
    assert operations(recording) == [*before, COMPLETE_FREE, EMPTY_CACHE, MALLOC]


def test_a_private_pool_is_released_before_its_memory_goes_back() -> None:
    for version in ((2, 11), (2, 12)):
        job = RecordedJob(version=version)
        job.free(job.malloc(30 * MIB, pool_id=GRAPH))
        job.malloc(30 * MIB)
        job.model.release_pool(GRAPH)
        job.model.empty_cache()
        job.malloc(40 * MIB, pool_id=GRAPH)
        recording = job.recording()

        calls = calls_of(recording, unbounded(recording))
        rows = [(row[0], row[5]) for row in calls.rows(0, len(calls))]

        if version == (2, 12):
            assert rows == [
                (MALLOC, GRAPH),
                (FREE, GRAPH),
                (MALLOC, None),
                (RELEASE_POOL, GRAPH),
                (EMPTY_CACHE, GRAPH),
                (MALLOC, GRAPH),
            ]
        else:
            # What is gone has left no sign of its pool.
            assert [pool for _operation, pool in rows] == [None] * 4 + [GRAPH]


def test_calls_before_the_start_are_left_out() -> None:
    job = RecordedJob()
    job.free(job.malloc(30 * MIB))
    job.model.empty_cache()
    job.malloc(40 * MIB)
    recording = job.recording()

    calls = calls_of(recording, unbounded(recording), start=5)

    assert calls.operations.tolist() == [MALLOC]


def test_rows_come_in_pieces_of_bounded_size() -> None:
    count = CHUNK + 3
    numbers = np.arange(count)
    calls = Calls(
        operations=np.full(count, MALLOC, dtype=np.uint8),
        events=numbers,
        addresses=numbers.astype(np.uint64),
        sizes=numbers,
        streams=numbers,
        pools=None,
        pool_ids=[(0, 0)],
    )

    rows = list(calls.rows(CHUNK - 1, count))

    assert len(calls) == count
    assert [row[1] for row in rows] == [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 2]


def test_a_flush_of_a_private_pool_alone_is_a_call_even_while_others_wait() -> None:
    job = RecordedJob(version=(2, 12))
    waiting = job.malloc(40 * MIB)
    job.model.record_stream(waiting, 5)
    job.free(job.malloc(30 * MIB, pool_id=GRAPH))
    job.free(waiting)
    job.model.release_pool(GRAPH)
    job.model.empty_cache(GRAPH)
    recording = job.recording()

    assert operations(recording)[-2:] == [RELEASE_POOL, EMPTY_CACHE]


def test_a_flush_while_others_wait_is_no_call() -> None:
    job = RecordedJob(AllocatorSettings(garbage_collection_threshold=0.5), limit_bytes=100 * MIB)
    waiting, other = job.malloc(30 * MIB), job.malloc(25 * MIB)
    job.model.record_stream(waiting, 5)
    job.free(waiting, other)
    job.malloc(35 * MIB)
    recording = job.recording()

    assert operations(recording) == [MALLOC, MALLOC, FREE_IN_USE, FREE, MALLOC]


def failing_after_a_wait(*sizes_of_others: int) -> RecordedJob:
    job = RecordedJob(capacity_bytes=40 * MIB)
    waiting, _kept, _more = job.malloc(9 * MIB), job.malloc(9 * MIB), job.malloc(18 * MIB)
    others = [job.malloc(size) for size in sizes_of_others]
    job.model.record_stream(waiting, 5)
    job.free(waiting, *others)
    return job


def test_a_failure_waited_for_frees_even_if_nothing_went_back() -> None:
    job = failing_after_a_wait(512)
    job.malloc(512)
    with pytest.raises(OutOfMemoryError):
        job.malloc(9 * MIB)
    assert [entry["action"] for entry in job.entries][-2:] == ["free_completed", "oom"]

    # Completed before, the 9 MiB would have served the request.
    assert operations(job.recording())[-2:] == [OUT_OF_MEMORY, COMPLETE_FREE]


def test_a_free_that_would_have_served_the_failure_behind_it_waited() -> None:
    job = failing_after_a_wait()
    with pytest.raises(OutOfMemoryError):
        job.malloc(9 * MIB)
    recording = job.recording()
    assert [entry["action"] for entry in job.entries][-3:] == [
        "free_requested",
        "free_completed",
        "oom",
    ]
    assert operations(recording)[-3:] == [FREE_IN_USE, OUT_OF_MEMORY, COMPLETE_FREE]

    larger = failing_after_a_wait()
    with pytest.raises(OutOfMemoryError):
        larger.malloc(30 * MIB)
    # Nobody can tell: it would not have served.
    assert operations(larger.recording())[-2:] == [FREE, OUT_OF_MEMORY]
