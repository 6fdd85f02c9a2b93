from __future__ import annotations

import pytest

from vramscope_analysis.allocator import (
    AllocatorSettings,
    CachingAllocator,
    OutOfMemoryError,
)

MIB = 1 << 20
GIB = 1 << 30


def test_out_of_memory_says_what_was_there() -> None:
    events: list[tuple[str, int, int, int, tuple[int, int]]] = []
    model = CachingAllocator(64 * MIB, on_event=lambda *event: events.append(event))
    model.malloc(30 * MIB)
    cached = model.malloc(6 * MIB)
    model.malloc(8 * MIB)
    model.free(cached)

    with pytest.raises(OutOfMemoryError, match="20971520 free bytes for a request of 7340033") as e:
        model.malloc(7 * MIB + 1)

    error = e.value
    assert (error.requested_bytes, error.segment_bytes) == (7 * MIB + 1, 20 * MIB)
    assert (error.capacity_bytes, error.reserved_bytes) == (64 * MIB, 50 * MIB)
    assert (error.allocated_bytes, error.free_bytes) == (38 * MIB, 14 * MIB)
    assert error.largest_free_bytes == 6 * MIB
    assert events[-1] == ("oom", 14 * MIB, 7 * MIB + 512, 0, (0, 0))
    stats = model.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"]) == (1, 1)
    # The model goes on as the real allocator does.
    assert model.malloc(6 * MIB).address == cached.address


def test_cached_segments_are_released_before_a_request_fails() -> None:
    model = CachingAllocator(64 * MIB)
    model.free(model.malloc(40 * MIB))

    model.malloc(50 * MIB)

    stats = model.memory_stats()
    assert model.reserved_bytes == 50 * MIB
    assert (stats["num_alloc_retries"], stats["num_sync_all_streams"]) == (1, 1)
    assert (stats["num_device_alloc"], stats["num_device_free"]) == (2, 1)


def test_a_limit_below_the_capacity_binds() -> None:
    model = CachingAllocator(GIB, limit_bytes=32 * MIB)

    with pytest.raises(OutOfMemoryError) as error:
        model.malloc(40 * MIB)

    assert (error.value.allowed_bytes, error.value.capacity_bytes) == (32 * MIB, GIB)
    assert error.value.free_bytes == GIB


def test_streams_never_share_blocks() -> None:
    model = CachingAllocator(GIB)
    model.free(model.malloc(16 * MIB, stream=7))

    other = model.malloc(16 * MIB, stream=8)
    same = model.malloc(16 * MIB, stream=7)

    assert other.segment is not same.segment
    assert model.memory_stats()["num_device_alloc"] == 2
    assert [segment["stream"] for segment in model.segments()] == [7, 8]


def test_a_block_used_by_another_stream_stays_active_until_that_is_over() -> None:
    events: list[str] = []
    model = CachingAllocator(GIB, on_event=lambda action, *_: events.append(action))
    block = model.malloc(3 * MIB)
    model.record_stream(block, 5)

    model.free(block)

    stats = model.memory_stats()
    assert stats["allocated_bytes"]["all"]["current"] == 0
    assert stats["active_bytes"]["all"]["current"] == 3 * MIB
    assert model.segments()[0]["blocks"][0]["state"] == "active_pending_free"
    assert events[-1] == "free_requested"

    model.complete_free(block)

    assert model.memory_stats()["active_bytes"]["all"]["current"] == 0
    assert model.segments()[0]["blocks"] == [
        {
            "address": block.address,
            "size": 20 * MIB,
            "requested_size": 3 * MIB,
            "state": "inactive",
            "frames": [],
        }
    ]


def test_empty_cache_waits_for_pending_frees() -> None:
    model = CachingAllocator(GIB)
    block = model.malloc(3 * MIB)
    model.record_stream(block, 5)
    model.free(block)

    model.empty_cache()

    assert model.reserved_bytes == 0
    assert model.segments() == []


def test_old_blocks_are_collected_above_the_threshold_of_the_limit() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.5)
    model = CachingAllocator(GIB, settings, limit_bytes=128 * MIB)
    old, young, reused = (model.malloc(size * MIB) for size in (28, 26, 12))
    model.free(old)
    for _ in range(3):
        model.free(reused)
        reused = model.malloc(12 * MIB)
    model.free(young)

    model.malloc(30 * MIB)

    # 66 MiB were held, 2 more than half of the limit: the block that waited longest goes.
    assert sorted(s["total_size"] // MIB for s in model.segments()) == [12, 26, 30]
    assert model.memory_stats()["num_sync_all_streams"] == 0


def test_a_block_of_average_age_is_collected_too() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.25)
    model = CachingAllocator(GIB, settings, limit_bytes=128 * MIB)
    model.free(model.malloc(40 * MIB))

    model.malloc(44 * MIB)

    assert [s["total_size"] // MIB for s in model.segments()] == [44]


def test_without_a_limit_nothing_is_collected() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.01)
    model = CachingAllocator(GIB, settings)
    model.free(model.malloc(40 * MIB))

    model.malloc(44 * MIB)

    assert model.reserved_bytes == 84 * MIB


def test_freeing_twice_is_refused() -> None:
    model = CachingAllocator(GIB)
    block = model.malloc(1)
    model.free(block)

    with pytest.raises(ValueError, match="expected an allocated block"):
        model.free(block)


@pytest.mark.parametrize("version", [(2, 3), (2, 15)])
def test_a_version_with_other_rules_is_refused(version: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"expected a torch version from 2\.4 to 2\.14"):
        CachingAllocator(GIB, version=version)


def test_reset_peaks_keeps_what_is_current() -> None:
    model = CachingAllocator(GIB)
    keep = model.malloc(2 * MIB)
    model.free(model.malloc(64 * MIB))

    model.reset_peaks()

    allocated = model.memory_stats()["allocated_bytes"]["all"]
    assert allocated["peak"] == allocated["current"] == keep.size_bytes == 2 * MIB
    assert allocated["allocated"] == 66 * MIB


def test_a_request_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a size of at least 1 byte, got 0"):
        CachingAllocator(GIB).malloc(0)


def test_options_that_change_hold_from_the_next_call_on() -> None:
    model = CachingAllocator(None)
    oversize, small = model.malloc(60 * MIB), model.malloc(3 * MIB)
    model.free(oversize)

    model.set_settings(AllocatorSettings(max_split_size_bytes=50 * MIB, expandable_segments=True))

    # The free block is oversize now; free memory of plain segments is split finely.
    paged, plain = model.malloc(40 * MIB), model.malloc(17 * MIB - 512)
    assert (paged.segment.is_expandable, plain.segment) == (True, small.segment)
    assert [block.size_bytes for block in small.segment.blocks()] == [3 * MIB, 17 * MIB - 512, 512]

    model.set_settings(AllocatorSettings())
    model.free(paged)
    again = model.malloc(40 * MIB)
    assert again.segment is oversize.segment
    # The counter shows the option as it was at the start.
    assert model.memory_stats()["max_split_size"] == -1


def test_counters_of_oversize_blocks_follow_the_option_as_it_is_now() -> None:
    model = CachingAllocator(None, AllocatorSettings(max_split_size_bytes=50 * MIB))
    model.malloc(60 * MIB)
    block = model.malloc(40 * MIB)
    model.set_settings(AllocatorSettings(max_split_size_bytes=30 * MIB))

    model.free(block)

    stats = model.memory_stats()
    assert stats["oversize_allocations"]["current"] == 0
    assert stats["oversize_segments"]["current"] == 1


def test_a_lower_limit_releases_nothing_until_the_next_miss() -> None:
    model = CachingAllocator(GIB)
    model.free(model.malloc(100 * MIB))
    model.set_limit(50 * MIB)
    assert model.reserved_bytes == 100 * MIB

    model.malloc(20 * MIB + 1, stream=1)
    assert model.reserved_bytes == 22 * MIB
    model.set_limit(None)
    model.malloc(100 * MIB)


def test_a_device_may_shrink_and_grow() -> None:
    model = CachingAllocator(None)
    model.malloc(100 * MIB)
    model.set_capacity(110 * MIB)
    with pytest.raises(OutOfMemoryError):
        model.malloc(20 * MIB)

    model.set_capacity(None)
    assert model.malloc(20 * MIB).size_bytes == 20 * MIB


@pytest.mark.parametrize(
    ("version", "full"), [((2, 4), 100 * MIB), ((2, 9), 100 * MIB), ((2, 10), None)]
)
def test_a_fraction_of_the_device_is_a_limit(version: tuple[int, int], full: int | None) -> None:
    model = CachingAllocator(100 * MIB, version=version)

    model.set_memory_fraction(2.9 / (100 * MIB))
    assert model.limit_bytes == 2
    model.set_memory_fraction(1.0)
    assert model.limit_bytes == full

    with pytest.raises(ValueError, match=r"expected a fraction from 0 to 1, got 1\.5"):
        model.set_memory_fraction(1.5)
    with pytest.raises(ValueError, match="expected a device with a capacity"):
        CachingAllocator(None).set_memory_fraction(0.5)


@pytest.mark.parametrize(("version", "limit"), [((2, 9), None), ((2, 10), 50 * MIB)])
def test_the_fraction_among_the_options_counts_at_the_start(
    version: tuple[int, int], limit: int | None
) -> None:
    settings = AllocatorSettings(per_process_memory_fraction=0.5)
    model = CachingAllocator(100 * MIB, settings, version=version)
    assert model.limit_bytes == limit

    model.set_settings(AllocatorSettings(per_process_memory_fraction=0.25))
    assert model.limit_bytes == limit
    assert CachingAllocator(None, settings).limit_bytes is None
    assert CachingAllocator(100 * MIB, settings, limit_bytes=9).limit_bytes == 9


def test_totals_begin_anew() -> None:
    model = CachingAllocator(GIB)
    model.free(model.malloc(3 * MIB))

    model.reset_accumulated()

    stats = model.memory_stats()
    assert stats["allocation"]["all"] == {"current": 0, "peak": 1, "allocated": 0, "freed": 0}
    assert stats["num_device_alloc"] == 0
