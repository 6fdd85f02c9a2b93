from __future__ import annotations

import pytest

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import CachingAllocator
from vramscope_analysis.replay.calls import (
    COMPLETE_FREE,
    EMPTY_CACHE,
    FREE,
    FREE_IN_USE,
    MALLOC,
    RELEASE_POOL,
)
from vramscope_analysis.replay.replayed_job import ReplayedJob, held_blocks

GRAPH = (1, 0)


def holding(model: CachingAllocator, *names: int) -> ReplayedJob:
    job = ReplayedJob(model, [])
    for name in names:
        job.blocks[name] = model.malloc(30 * MIB)
    return job


def test_blocks_are_freed_by_their_recorded_address() -> None:
    model = CachingAllocator(None)
    job = holding(model, 1, 2)

    job.call(FREE, 1, None)

    assert model.allocated_bytes == 30 * MIB
    assert job.blocks.keys() == {2}
    job.call(EMPTY_CACHE, 0, None)
    assert model.reserved_bytes == 30 * MIB


def test_a_block_in_use_stays_active_until_its_free_is_completed() -> None:
    model = CachingAllocator(None)
    job = holding(model, 1)

    job.call(FREE_IN_USE, 1, None)
    assert (model.allocated_bytes, model.counters.all.active_bytes.current) == (0, 30 * MIB)
    job.call(COMPLETE_FREE, 1, None)

    assert model.counters.all.active_bytes.current == 0


def test_a_free_that_a_flush_has_completed_is_not_completed_again() -> None:
    model = CachingAllocator(None)
    job = holding(model, 1)
    job.call(FREE_IN_USE, 1, None)

    job.call(EMPTY_CACHE, 0, None)
    job.call(COMPLETE_FREE, 1, None)

    assert model.reserved_bytes == 0
    assert job.unknown_frees == 0


def test_a_completed_free_without_its_request_is_a_free() -> None:
    model = CachingAllocator(None)
    job = holding(model, 1)

    job.call(COMPLETE_FREE, 1, None)

    assert model.allocated_bytes == 0


def test_frees_of_what_is_not_held_are_counted() -> None:
    job = holding(CachingAllocator(None))

    for operation in (FREE, FREE_IN_USE, COMPLETE_FREE):
        job.call(operation, 1, None)

    assert job.unknown_frees == 3


def test_a_pool_is_released_once() -> None:
    model = CachingAllocator(None)
    job = ReplayedJob(model, [])
    model.free(model.malloc(30 * MIB, pool_id=GRAPH))
    job.call(EMPTY_CACHE, 0, GRAPH)
    assert model.reserved_bytes == 30 * MIB

    job.call(RELEASE_POOL, 0, GRAPH)
    job.call(RELEASE_POOL, 0, GRAPH)
    job.call(EMPTY_CACHE, 0, GRAPH)

    assert model.reserved_bytes == 0


def test_what_was_held_at_the_start_can_be_freed() -> None:
    before = RecordedJob()
    kept, pending = before.malloc(30 * MIB), before.malloc(40 * MIB)
    before.model.record_stream(pending, 5)
    before.free(pending)
    model = CachingAllocator(None)

    job = ReplayedJob(model, before.model.segments())
    assert (model.allocated_bytes, model.reserved_bytes) == (30 * MIB, 70 * MIB)
    job.call(FREE, kept.address, None)
    job.call(COMPLETE_FREE, pending.address, None)
    job.call(EMPTY_CACHE, 0, None)

    assert model.reserved_bytes == 0
    assert job.unknown_frees == 0


def test_requests_are_made_by_who_places_their_blocks() -> None:
    with pytest.raises(ValueError, match="expected a call that is no request"):
        ReplayedJob(CachingAllocator(None), []).call(MALLOC, 1, None)


def test_what_a_job_holds_is_told_with_its_request_and_whether_it_waits() -> None:
    blocks = [
        {"size": 1024, "requested_size": 1000, "state": "active_allocated"},
        {"size": 512, "requested_size": 0, "state": "inactive"},
        {"size": 512, "state": "active_pending_free"},
    ]
    segment = {"address": 4096, "stream": 7, "segment_pool_id": [1, 2], "blocks": blocks}
    assert list(held_blocks([segment])) == [
        (4096, 1000, 7, (1, 2), False),
        (4096 + 1536, 512, 7, (1, 2), True),
    ]
    assert [held[3] for held in held_blocks([{**segment, "segment_pool_id": None}])] == [(0, 0)] * 2
