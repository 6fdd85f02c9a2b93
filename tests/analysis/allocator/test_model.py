from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.allocator_traces import flatten
from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
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


# ------------------------------------------------------------------- what holds for any calls

CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.just("malloc"),
            st.one_of(st.integers(1, 4096), st.integers(1, 48 * MIB)),
            st.integers(0, 1),
        ),
        st.tuples(st.just("free"), st.integers(0, 10_000), st.just(0)),
        st.tuples(st.just("record_stream"), st.integers(0, 10_000), st.integers(0, 1)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
        st.tuples(st.just("reset_peaks"), st.just(0), st.just(0)),
    ),
    max_size=60,
)
SETTINGS = st.builds(
    AllocatorSettings,
    roundup_power2_divisions=st.sampled_from([(0,) * 16, (8,) * 16]),
    max_split_size_bytes=st.sampled_from([AllocatorSettings.max_split_size_bytes, 24 * MIB]),
    garbage_collection_threshold=st.sampled_from([0.0, 0.4]),
)


def apply_calls(model: CachingAllocator, calls: list[tuple[str, int, int]]) -> list[Block]:
    live: list[Block] = []
    errors: list[OutOfMemoryError] = []
    for name, number, stream in calls:
        if name == "malloc":
            try:
                live.append(model.malloc(number, stream))
            except OutOfMemoryError as error:
                errors.append(error)
        elif name == "free" and live:
            model.free(live.pop(number % len(live)))
        elif name == "record_stream" and live:
            model.record_stream(live[number % len(live)], stream)
        elif name == "empty_cache":
            model.empty_cache()
        elif name == "reset_peaks":
            model.reset_peaks()
    assert all(e.segment_bytes > e.allowed_bytes - e.reserved_bytes for e in errors)
    return live


def recount(kept: list[dict[str, Any]]) -> dict[str, int]:
    """Gauges of some segments, counted anew from their blocks."""
    blocks = [(len(s["blocks"]) > 1, block) for s in kept for block in s["blocks"]]
    allocated = [b for _, b in blocks if b["state"] == "active_allocated"]
    active = [b for _, b in blocks if b["state"] != "inactive"]
    split = [b for is_split, b in blocks if is_split and b["state"] == "inactive"]
    return {
        "allocation": len(allocated),
        "allocated_bytes": sum(b["size"] for b in allocated),
        "active": len(active),
        "active_bytes": sum(b["size"] for b in active),
        "requested_bytes": sum(b["requested_size"] for b in active),
        "segment": len(kept),
        "reserved_bytes": sum(s["total_size"] for s in kept),
        "inactive_split": len(split),
        "inactive_split_bytes": sum(b["size"] for b in split),
    }


def check_invariants(model: CachingAllocator) -> None:
    segments = model.segments()
    end = 0
    for segment in segments:
        assert segment["address"] >= end, "segments overlap"
        end = segment["address"]
        states = [block["state"] for block in segment["blocks"]]
        assert ("inactive", "inactive") not in set(itertools.pairwise(states))
        for block in segment["blocks"]:
            assert block["address"] == end, "blocks leave a hole or overlap"
            assert block["size"] % 512 == 0
            assert block["state"] == "inactive" or block["requested_size"] <= block["size"]
            end += block["size"]
        assert end == segment["address"] + segment["total_size"]
    stats = model.memory_stats()
    for pool, kind in (("all", None), ("small_pool", "small"), ("large_pool", "large")):
        gauges = recount([s for s in segments if kind in (None, s["segment_type"])])
        assert {name: stats[name][pool]["current"] for name in gauges} == gauges
        for name in gauges:
            stat = stats[name][pool]
            assert stat["allocated"] - stat["freed"] == stat["current"] <= stat["peak"]
    assert model.allowed_bytes is None or model.reserved_bytes <= model.allowed_bytes


@given(calls=CALLS, settings=SETTINGS)
def test_blocks_fill_their_segments_and_counters_equal_a_recount(
    calls: list[tuple[str, int, int]], settings: AllocatorSettings
) -> None:
    model = CachingAllocator(GIB, settings, limit_bytes=160 * MIB)

    live = apply_calls(model, calls)

    check_invariants(model)
    assert {block.address for block in live} == {
        block["address"]
        for segment in model.segments()
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }


@given(calls=CALLS, settings=SETTINGS)
def test_everything_freed_and_emptied_leaves_nothing(
    calls: list[tuple[str, int, int]], settings: AllocatorSettings
) -> None:
    model = CachingAllocator(GIB, settings, limit_bytes=160 * MIB)

    for block in apply_calls(model, calls):
        model.free(block)
    model.empty_cache()

    assert model.segments() == []
    stats = flatten(model.memory_stats())
    assert {key for key, value in stats.items() if key.endswith(".current") and value} == set()
    assert stats["num_device_alloc"] == stats["num_device_free"]


@given(calls=CALLS)
def test_the_same_calls_give_the_same_blocks(calls: list[tuple[str, int, int]]) -> None:
    first, second = CachingAllocator(160 * MIB), CachingAllocator(160 * MIB)

    apply_calls(first, calls)
    apply_calls(second, calls)

    assert first.segments() == second.segments()
    assert first.memory_stats() == second.memory_stats()
