from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.allocator_traces import flatten
from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    FirstFitAddresses,
    OutOfMemoryError,
    Version,
)

MIB = 1 << 20
EXPANDABLE = AllocatorSettings(expandable_segments=True)


def new_model(**options: Any) -> CachingAllocator:
    options = {"capacity_bytes": 300 * MIB, "addresses": FirstFitAddresses(0), **options}
    return CachingAllocator(**options)


def current(model: CachingAllocator) -> dict[str, int]:
    return {
        name: value
        for name, value in flatten(model.memory_stats()).items()
        if name.endswith(".current")
    }


def test_the_state_comes_back_as_it_was() -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    model = new_model(settings=settings)
    blocks = [model.malloc(size, stream) for size in (100, 3 * MIB, 40 * MIB) for stream in (0, 5)]
    graph = model.malloc(2 * MIB, pool_id=(0, 1))
    model.record_stream(blocks[1], 9)
    for block in (blocks[1], blocks[2], graph):
        model.free(block)

    again = new_model(settings=settings)
    in_use = again.restore(model.segments())

    assert again.segments() == model.segments()
    assert current(again) == current(model)
    stats = flatten(again.memory_stats())
    assert {stats[name] for name in stats if name.startswith("num_")} == {0}
    assert in_use == {block.address: block for block in in_use.values()}
    waiting = in_use.pop(blocks[1].address)
    assert waiting.state == "active_pending_free"
    assert set(in_use) == {block.address for block in (blocks[0], *blocks[3:])}

    # A release waits for the block that waits, as it does in the first model.
    for each in (model, again):
        each.empty_cache()
    assert again.segments() == model.segments()
    assert current(again) == current(model)
    # The private pool has one use, and lives until its last segment is gone.
    again.release_pool((0, 1))
    again.empty_cache()
    again.create_pool((0, 1))
    assert {segment["segment_pool_id"] for segment in again.segments()} == {(0, 0)}


CALLS = st.lists(
    st.tuples(st.sampled_from(["malloc", "malloc", "free"]), st.integers(1, 24 * MIB)), max_size=40
)


def apply(model: CachingAllocator, live: list[Block], calls: list[tuple[str, int]]) -> list[int]:
    addresses: list[int] = []
    for name, number in calls:
        if name == "free" and live:
            model.free(live.pop(number % len(live)))
        elif name == "malloc":
            try:
                live.append(model.malloc(number))
            except OutOfMemoryError:
                continue
            addresses.append(live[-1].address)
    return addresses


@given(before=CALLS, after=CALLS, version=st.sampled_from([(2, 4), (2, 11)]))
def test_a_restored_model_goes_on_as_the_first_one(
    before: list[tuple[str, int]], after: list[tuple[str, int]], version: Version
) -> None:
    model = new_model(version=version)
    live: list[Block] = []
    apply(model, live, before)
    again = new_model(version=version)
    in_use = again.restore(model.segments())

    restored = [in_use[block.address] for block in live]

    assert apply(again, restored, after) == apply(model, live, after)
    assert again.segments() == model.segments()
    assert current(again) == current(model)


def expandable_state() -> CachingAllocator:
    """A range with a gap at its start and one in the middle."""
    model = new_model(settings=EXPANDABLE, capacity_bytes=400 * MIB)
    blocks = [model.malloc(20 * MIB) for _ in range(5)]
    model.malloc(1000)
    for number in (0, 2):
        model.free(blocks[number])
    model.empty_cache()
    model.free(blocks[3])
    return model


def test_a_range_comes_back_with_its_gaps() -> None:
    model = expandable_state()
    segments = model.segments()
    large = [segment for segment in segments if segment["segment_type"] == "large"]
    assert [segment["address"] // MIB for segment in large] == [20, 60]
    for segment in large:
        segment["range_address"] = 0

    again = new_model(settings=EXPANDABLE, capacity_bytes=400 * MIB)
    again.restore(segments)

    assert again.segments() == model.segments()
    assert current(again) == current(model)
    events: list[tuple[str, int, int]] = []

    def see(action: str, address: int, size_bytes: int, *_rest: object) -> None:
        events.append((action, address // MIB, size_bytes // MIB))

    again.on_event = see
    again.malloc(30 * MIB)
    again.malloc(20 * MIB)
    # First the gap in the middle with the free page behind it, then the one at the start.
    assert events == [
        ("segment_map", 40, 20),
        ("alloc", 40, 30),
        ("segment_map", 0, 20),
        ("alloc", 0, 20),
    ]


def test_a_range_begins_at_its_lowest_piece_if_nothing_else_is_known() -> None:
    model = expandable_state()
    again = new_model(settings=EXPANDABLE, capacity_bytes=None)
    again.restore(model.segments())

    assert again.segments() == model.segments()
    # 40 to 60 is the first gap now; what comes behind the range's last page is free as well.
    assert again.malloc(20 * MIB).address == 60 * MIB
    assert again.malloc(20 * MIB).address == 40 * MIB
    assert again.malloc(20 * MIB).address == 100 * MIB


def test_a_range_ends_before_the_next_one() -> None:
    model = expandable_state()
    again = new_model(settings=EXPANDABLE, capacity_bytes=None)
    again.restore(model.segments())
    starts = sorted(segment["address"] for segment in again.segments())

    # The small range lies behind the large one: what does not fit between has a new range.
    block = again.malloc(600 * MIB)

    assert block.address > starts[-1]


@pytest.mark.parametrize(("page_bytes", "unmapped"), [(None, 60), (40 * MIB, 40)])
def test_the_size_of_pages_may_be_told(page_bytes: int | None, unmapped: int) -> None:
    model = new_model(settings=EXPANDABLE, capacity_bytes=400 * MIB)
    model.malloc(10 * MIB)
    model.free(model.malloc(60 * MIB))
    segments = [{**segment, "page_bytes": page_bytes} for segment in model.segments()]

    again = new_model(settings=EXPANDABLE, capacity_bytes=400 * MIB)
    again.restore(segments)
    again.empty_cache()

    assert model.reserved_bytes - again.reserved_bytes == unmapped * MIB


def test_pages_of_another_size_than_the_option_says_fit_the_pieces() -> None:
    model = new_model(settings=EXPANDABLE)
    model.malloc(10 * MIB)
    again = new_model(
        settings=AllocatorSettings(expandable_segments=True, large_segment_bytes=64 * MIB)
    )
    again.restore(model.segments())

    again.malloc(15 * MIB)

    assert again.reserved_bytes == sum(s["total_size"] for s in again.segments()) == 28 * MIB


def test_the_age_of_memory_orders_equal_blocks() -> None:
    def restored(**ages: int) -> CachingAllocator:
        first = new_model(version=(2, 13))
        for block in [first.malloc(20 * MIB) for _ in range(3)]:
            first.free(block)
        segments = first.segments()
        for segment, age in zip(segments, ages.values(), strict=False):
            segment["registration"] = age
        again = new_model(version=(2, 13))
        again.restore(segments)
        return again

    assert restored().malloc(20 * MIB).address == 0
    assert restored(first=7, second=2, third=5).malloc(20 * MIB).address == 20 * MIB


def test_the_age_of_blocks_orders_equal_ones() -> None:
    first = new_model(version=(2, 12))
    blocks = [first.malloc(512) for _ in range(6)]
    for block in blocks[::2]:
        first.free(block)

    def taken(ages: list[int | None]) -> list[int]:
        segments = first.segments()
        told = [{**b, "registration": n} for b, n in zip(segments[0]["blocks"], ages, strict=True)]
        again = new_model(version=(2, 12))
        again.restore([{**segments[0], "blocks": told}])
        return [again.malloc(512).address for _ in range(3)]

    assert taken([None] * 7) == [0, 1024, 2048]
    assert taken([5, 0, 3, 1, 4, 2, 6]) == [1024, 2048, 0]
    assert taken([None, 0, 3, 1, None, 2, 6]) == [1024, 0, 2048]


def test_a_restored_pool_lives_as_long_as_its_blocks() -> None:
    model = new_model()
    model.malloc(1, pool_id=(0, 1))
    again = new_model()
    again.restore(model.segments())

    again.release_pool((0, 1))
    again.empty_cache()

    with pytest.raises(ValueError, match="after its release"):
        again.create_pool((0, 1))


def test_what_lies_between_two_pieces_parts_them() -> None:
    model = expandable_state()
    segments = [s for s in model.segments() if s["segment_type"] == "large"]
    plain = {**segments[0], "address": 45 * MIB, "total_size": 10 * MIB, "is_expandable": False}
    plain["blocks"] = [{"size": 10 * MIB, "state": "inactive"}]

    again = new_model(settings=EXPANDABLE, capacity_bytes=None)
    again.restore([*segments, plain])

    # The gap at 40 is no part of a range any more.
    assert [again.malloc(20 * MIB).address // MIB for _ in range(2)] == [60, 100]
    bad = {**segments[1], "range_address": 50 * MIB}
    with pytest.raises(ValueError, match="expected a range_address of at least 0x3700000"):
        new_model().restore([segments[0], plain, bad])


def test_new_segments_lie_beside_the_restored_ones() -> None:
    first = new_model(addresses=FirstFitAddresses(100 * MIB))
    first.malloc(30 * MIB)
    again = new_model(addresses=FirstFitAddresses(80 * MIB))
    again.restore(first.segments())

    assert again.malloc(40 * MIB).address == 130 * MIB
    assert again.malloc(20 * MIB).address == 80 * MIB


def test_only_an_empty_model_is_filled() -> None:
    model = new_model()
    model.malloc(1)

    with pytest.raises(ValueError, match="expected an empty model, got one that holds 2097152"):
        model.restore(model.segments())
