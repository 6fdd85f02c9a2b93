from __future__ import annotations

from tests.support.allocator_traces import load_trace
from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import DEFAULT_POOL_ID, AllocatorSettings
from vramscope_analysis.replay.pools import Pools, pool_id
from vramscope_analysis.snapshot import Action

GRAPH = (1, 0)


def job(version: tuple[int, int]) -> RecordedJob:
    job = RecordedJob(version=version)
    job.malloc(3 * MIB)
    job.malloc(3 * MIB, pool_id=GRAPH)
    job.free(job.malloc(2 * MIB, pool_id=GRAPH))
    job.malloc(12 * MIB)
    return job


def names(pools: Pools) -> list[tuple[int, int]]:
    assert pools.of_event is not None
    return [pools.ids[index] for index in pools.of_event.tolist()]


EXPECTED = [DEFAULT_POOL_ID] * 2 + [GRAPH] * 5 + [DEFAULT_POOL_ID]


def test_from_2_12_on_every_entry_names_its_pool() -> None:
    pools = Pools.of_recording(job((2, 12)).recording())

    assert pools.ids == [DEFAULT_POOL_ID, GRAPH]
    assert names(pools) == EXPECTED


def test_before_that_the_segment_at_the_address_tells() -> None:
    pools = Pools.of_recording(job((2, 11)).recording())

    assert names(pools) == EXPECTED


def test_an_address_used_before_belonged_to_another_segment() -> None:
    recorded = RecordedJob()
    recorded.free(recorded.malloc(12 * MIB))
    recorded.model.empty_cache()
    recorded.malloc(12 * MIB, pool_id=GRAPH)

    pools = Pools.of_recording(recorded.recording())

    assert names(pools) == [DEFAULT_POOL_ID] * 5 + [GRAPH] * 2


def test_pages_at_addresses_used_before_belonged_to_another_range() -> None:
    recorded = RecordedJob(AllocatorSettings(expandable_segments=True))
    recorded.free(recorded.malloc(30 * MIB))
    recorded.model.empty_cache()
    recorded.malloc(30 * MIB, pool_id=GRAPH)
    recorded.malloc(30 * MIB, pool_id=GRAPH)

    pools = Pools.of_recording(recorded.recording())

    assert recorded.entries[0]["addr"] == recorded.entries[5]["addr"]
    assert names(pools) == [DEFAULT_POOL_ID] * 5 + [GRAPH] * 4


def test_without_private_pools_nothing_is_kept_per_entry() -> None:
    for version in ((2, 11), (2, 12)):
        recorded = RecordedJob(version=version)
        recorded.malloc(12 * MIB)

        pools = Pools.of_recording(recorded.recording())

        assert (pools.ids, pools.of_event) == ([DEFAULT_POOL_ID], None)


def test_a_real_capture_has_its_own_segments() -> None:
    recording = load_trace("graphs__default").recording

    pools = Pools.of_recording(recording)

    taken = [
        pool
        for pool, action in zip(names(pools), recording.events.actions.tolist(), strict=True)
        if action == Action.SEGMENT_ALLOC
    ]
    held = [pool_id(segment) for segment in recording.segments]
    assert taken.count(GRAPH) == held.count(GRAPH) == 8
