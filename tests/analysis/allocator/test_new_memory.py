from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings, CachingAllocator, OutOfMemoryError

MIB = 1 << 20
POOL = (0, 1)


def chain(model: CachingAllocator) -> tuple[int, int, int]:
    stats = model.memory_stats()
    return (stats["num_alloc_retries"], stats["num_sync_all_streams"], stats["num_ooms"])


@pytest.mark.parametrize(
    ("version", "helped", "flushed"),
    [((2, 7), False, True), ((2, 8), True, True), ((2, 10), True, True), ((2, 11), True, False)],
)
def test_pools_that_opted_in_help_when_memory_runs_out(
    version: tuple[int, int], helped: bool, flushed: bool
) -> None:
    model = CachingAllocator(100 * MIB, version=version)
    model.create_pool(POOL, use_on_oom=True)
    spare = model.malloc(50 * MIB, pool_id=POOL)
    model.free(spare)
    model.free(model.malloc(40 * MIB, stream=3))
    model.malloc(10 * MIB)

    if helped:
        block = model.malloc(49 * MIB + 1)
        # The rest of it belongs to that pool as well, and is split by the plain rule.
        assert (block.address, block.pool.pool_id) == (spare.address, POOL)
        assert block.size_bytes == 50 * MIB
    else:
        with pytest.raises(OutOfMemoryError):
            model.malloc(49 * MIB + 1)
    assert chain(model) == (int(flushed), int(flushed), int(not helped))


@pytest.mark.parametrize(("version", "helped"), [((2, 9), True), ((2, 10), False)])
def test_expandable_memory_of_another_pool_helped_once(
    version: tuple[int, int], helped: bool
) -> None:
    settings = AllocatorSettings(expandable_segments=True)
    model = CachingAllocator(100 * MIB, settings, version=version)
    model.create_pool(POOL, use_on_oom=True)
    model.free(model.malloc(60 * MIB, pool_id=POOL))

    if helped:
        block = model.malloc(50 * MIB)
        assert (block.size_bytes, block.pool.pool_id) == (50 * MIB, POOL)
    else:
        with pytest.raises(OutOfMemoryError):
            model.malloc(50 * MIB)


def test_a_pool_that_nobody_uses_does_not_help() -> None:
    model = CachingAllocator(100 * MIB)
    model.create_pool(POOL, use_on_oom=True)
    kept = model.malloc(1000, pool_id=POOL)
    model.free(model.malloc(60 * MIB, pool_id=POOL))
    model.release_pool(POOL)

    block = model.malloc(60 * MIB)

    # What it held was released instead.
    assert (block.pool.pool_id, kept.state) == ((0, 0), "active_allocated")
    assert chain(model) == (1, 1, 0)


def test_the_search_of_another_pool_lets_its_blocks_age() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.9)
    model = CachingAllocator(None, settings, limit_bytes=100 * MIB)
    model.create_pool(POOL, use_on_oom=True)
    spare = model.malloc(60 * MIB, pool_id=POOL)
    model.free(spare)
    assert spare.pool.age(spare) == 0

    with pytest.raises(OutOfMemoryError):
        model.malloc(70 * MIB)

    assert spare.pool.age(spare) == 1


def test_a_pool_does_not_help_another_one() -> None:
    model = CachingAllocator(100 * MIB)
    model.create_pool(POOL, use_on_oom=True)
    model.free(model.malloc(60 * MIB, pool_id=POOL))

    with pytest.raises(OutOfMemoryError):
        model.malloc(60 * MIB, pool_id=(0, 2))


def test_a_pool_that_must_not_split_hands_out_whole_segments() -> None:
    model = CachingAllocator(None)
    model.create_pool(POOL, no_split=True)

    assert model.malloc(1000, pool_id=POOL).size_bytes == 2 * MIB
    assert model.malloc(1000).size_bytes == 1024


def test_nothing_cached_is_released_during_a_capture() -> None:
    model = CachingAllocator(100 * MIB)
    model.free(model.malloc(60 * MIB))
    model.begin_allocate_to_pool(POOL, is_capture=True)

    with pytest.raises(OutOfMemoryError):
        model.malloc(60 * MIB)

    assert chain(model) == (0, 0, 1)
    assert model.reserved_bytes == 60 * MIB


def test_oversize_segments_are_released_during_a_capture() -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    model = CachingAllocator(100 * MIB, settings)
    model.begin_allocate_to_pool(POOL, is_capture=True)
    for block in [model.malloc(size * MIB) for size in (60, 36)]:
        model.free(block)

    assert model.malloc(90 * MIB).size_bytes == 90 * MIB
    assert chain(model) == (0, 0, 0)


def test_a_request_above_the_fraction_is_rejected_before_the_device_is_asked() -> None:
    events: list[str] = []

    def see(action: str, *_rest: object) -> None:
        events.append(action)

    settings = AllocatorSettings(throw_on_cudamalloc_oom=True, per_process_memory_fraction=0.5)
    model = CachingAllocator(200 * MIB, settings, limit_bytes=180 * MIB, version=(2, 12))
    model.free(model.malloc(60 * MIB))
    model.on_event = see

    with pytest.raises(OutOfMemoryError) as rejected:
        model.malloc(70 * MIB)

    assert rejected.value.is_rejection
    assert chain(model) == (0, 0, 0)
    assert model.memory_stats()["num_oom_rejections"] == 1
    assert events == []

    # Above the limit itself the whole chain runs; what is rejected on the way ends it.
    with pytest.raises(OutOfMemoryError) as refused:
        model.malloc(190 * MIB)
    assert not refused.value.is_rejection
    assert chain(model) == (1, 1, 1)


def test_without_a_device_end_nothing_is_rejected() -> None:
    settings = AllocatorSettings(throw_on_cudamalloc_oom=True)
    model = CachingAllocator(None, settings, version=(2, 12))

    assert model.malloc(1 << 40).size_bytes == 1 << 40


def test_a_retry_is_counted_even_if_it_fails() -> None:
    model = CachingAllocator(10 * MIB)

    for ooms in (1, 2):
        with pytest.raises(OutOfMemoryError):
            model.malloc(20 * MIB)
        assert chain(model) == (ooms, ooms, ooms)
