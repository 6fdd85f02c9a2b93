from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings, CachingAllocator

MIB = 1 << 20
GRAPH, OTHER = (0, 1), (0, 2)


def pools_held(model: CachingAllocator) -> list[tuple[tuple[int, int], int]]:
    return sorted((s["segment_pool_id"], s["total_size"] // MIB) for s in model.segments())


def capture(model: CachingAllocator, pool_id: tuple[int, int], *sizes: int) -> None:
    """Capture a graph that needs memory only inside."""
    model.begin_allocate_to_pool(pool_id, is_capture=True)
    for block in [model.malloc(size) for size in sizes]:
        model.free(block)
    model.end_allocate_to_pool(pool_id)


def test_a_scope_diverts_requests_to_its_pool() -> None:
    model = CachingAllocator(None)
    model.begin_allocate_to_pool(GRAPH, streams=[7])
    diverted, other = model.malloc(30 * MIB, stream=7), model.malloc(30 * MIB, stream=8)
    model.end_allocate_to_pool(GRAPH)
    after = model.malloc(30 * MIB, stream=7)

    assert [block.pool.pool_id for block in (diverted, other, after)] == [GRAPH, (0, 0), (0, 0)]
    model.free(diverted)
    assert model.malloc(30 * MIB, stream=7, pool_id=GRAPH) is diverted


def test_pools_do_not_share_free_blocks() -> None:
    model = CachingAllocator(None)
    model.free(model.malloc(30 * MIB))
    model.malloc(30 * MIB, pool_id=GRAPH)
    model.free(model.malloc(30 * MIB, pool_id=OTHER))
    model.malloc(30 * MIB, pool_id=(0, 0))

    assert pools_held(model) == [((0, 0), 30), (GRAPH, 30), (OTHER, 30)]
    assert [s["segment_pool_id"] for s in model.segments(GRAPH)] == [GRAPH]


def test_a_pool_in_use_keeps_its_memory() -> None:
    model = CachingAllocator(None)
    capture(model, GRAPH, 30 * MIB, 1000)
    capture(model, OTHER, 40 * MIB)
    model.free(model.malloc(50 * MIB))

    model.empty_cache()
    assert pools_held(model) == [(GRAPH, 2), (GRAPH, 30), (OTHER, 40)]

    model.release_pool(GRAPH)
    model.empty_cache(OTHER)
    assert pools_held(model) == [(GRAPH, 2), (GRAPH, 30), (OTHER, 40)]
    model.empty_cache(GRAPH)
    assert pools_held(model) == [(OTHER, 40)]

    # The pool is gone: its id stands for a new one.
    model.create_pool(GRAPH)
    model.release_pool(OTHER)
    model.empty_cache()
    assert pools_held(model) == []


def test_an_unused_pool_lives_as_long_as_its_blocks() -> None:
    model = CachingAllocator(None)
    block = model.malloc(30 * MIB, pool_id=GRAPH)
    model.release_pool(GRAPH)
    model.empty_cache()
    with pytest.raises(ValueError, match="after its release"):
        model.create_pool(GRAPH)

    model.free(block)
    model.empty_cache()

    assert model.segments() == []
    model.create_pool(GRAPH)


def test_only_the_events_of_the_emptied_pool_are_waited_for() -> None:
    model = CachingAllocator(None)
    blocks = [model.malloc(30 * MIB, pool_id=pool_id) for pool_id in (GRAPH, OTHER, (0, 0))]
    for block in blocks:
        model.record_stream(block, 5)
        model.free(block)
    model.release_pool(GRAPH)
    model.release_pool(OTHER)

    model.empty_cache(GRAPH)

    assert [block.state for block in blocks[1:]] == ["active_pending_free"] * 2
    assert pools_held(model) == [((0, 0), 30), (OTHER, 30)]
    assert model.memory_stats()["num_sync_all_streams"] == 1


@pytest.mark.parametrize("version", [(2, 8), (2, 14)])
def test_a_capture_keeps_the_default_pools(version: tuple[int, int]) -> None:
    model = CachingAllocator(None, version=version)
    capture(model, OTHER, 40 * MIB)
    model.release_pool(OTHER)
    model.free(model.malloc(30 * MIB))
    model.begin_allocate_to_pool(GRAPH, is_capture=True)

    model.empty_cache()

    assert pools_held(model) == [((0, 0), 30)]
    assert model.memory_stats()["num_sync_all_streams"] == 0


def test_older_releases_refuse_to_empty_the_cache_in_a_scope() -> None:
    model = CachingAllocator(None, version=(2, 7))
    model.free(model.malloc(30 * MIB))
    model.begin_allocate_to_pool(GRAPH)

    with pytest.raises(RuntimeError, match="expected no capture"):
        model.empty_cache()

    assert pools_held(model) == [((0, 0), 30)]
    assert model.memory_stats()["num_sync_all_streams"] == 1


@pytest.mark.parametrize(("version", "flushed"), [((2, 12), False), ((2, 13), True)])
def test_a_scope_without_a_capture_lets_newer_releases_flush(
    version: tuple[int, int], flushed: bool
) -> None:
    model = CachingAllocator(None, version=version)
    model.free(model.malloc(30 * MIB))
    model.begin_allocate_to_pool(GRAPH)

    model.empty_cache()

    assert (pools_held(model) == []) is flushed


def test_expandable_segments_of_a_private_pool_are_its_own() -> None:
    settings = AllocatorSettings(expandable_segments=True)
    model = CachingAllocator(400 * MIB, settings)
    block = model.malloc(30 * MIB, pool_id=GRAPH)
    model.malloc(30 * MIB)
    assert pools_held(model) == [((0, 0), 40), (GRAPH, 40)]

    model.free(block)
    model.release_pool(GRAPH)
    model.empty_cache()

    assert pools_held(model) == [((0, 0), 40)]
    model.create_pool(GRAPH)


@pytest.mark.parametrize(("version", "expandable"), [((2, 9), True), ((2, 10), False)])
def test_a_pool_with_an_allocator_of_its_own_is_not_expandable(
    version: tuple[int, int], expandable: bool
) -> None:
    settings = AllocatorSettings(expandable_segments=True)
    model = CachingAllocator(None, settings, version=version)
    model.create_pool(GRAPH, has_allocator=True)

    model.malloc(15 * MIB, pool_id=GRAPH)

    (segment,) = model.segments()
    assert segment["is_expandable"] is expandable
    assert segment["total_size"] == (20 if expandable else 16) * MIB


def test_reserved_bytes_of_private_pools_outlive_them() -> None:
    model = CachingAllocator(None, version=(2, 13))
    block = model.malloc(30 * MIB, pool_id=GRAPH)
    model.free(block)
    model.release_pool(GRAPH)
    model.empty_cache()

    kept = model.memory_stats()["reserved_bytes_by_private_pools"]
    assert list(kept) == [GRAPH]
    assert kept[GRAPH]["large_pool"] == {
        "current": 0,
        "peak": 30 * MIB,
        "allocated": 30 * MIB,
        "freed": 30 * MIB,
    }
    assert kept[GRAPH]["small_pool"]["peak"] == 0


def test_the_order_in_which_pools_give_memory_back() -> None:
    events: list[tuple[tuple[int, int], int]] = []

    def see(
        action: str, _address: int, size_bytes: int, _stream: int, pool: tuple[int, int]
    ) -> None:
        if action == "segment_free":
            events.append((pool, size_bytes // MIB))

    model = CachingAllocator(None, on_event=see)
    for pool_id in (GRAPH, (0, 0)):
        for size_bytes in (30 * MIB, 1000):
            model.free(model.malloc(size_bytes, pool_id=pool_id))
    model.release_pool(GRAPH)

    model.empty_cache()

    # Of the default pools the large one goes first, of a private one the small one.
    assert events == [((0, 0), 30), ((0, 0), 2), (GRAPH, 2), (GRAPH, 30)]


def test_an_expandable_pool_is_counted_by_requests_that_mapped() -> None:
    settings = AllocatorSettings(expandable_segments=True)
    model = CachingAllocator(400 * MIB, settings)
    for block in [model.malloc(30 * MIB, pool_id=GRAPH) for _ in range(2)]:
        model.free(block)
    model.release_pool(GRAPH)

    model.empty_cache()

    # Two requests have mapped and one call has unmapped all of it: the pool stays for good.
    assert model.reserved_bytes == 0
    with pytest.raises(ValueError, match="after its release"):
        model.create_pool(GRAPH)
