from __future__ import annotations

import pytest

from tests.support.allocator_traces import flatten
from vramscope_analysis.allocator import (
    AllocatorSettings,
    CachingAllocator,
    FirstFitAddresses,
    OutOfMemoryError,
)

MIB = 1 << 20
EXPANDABLE = AllocatorSettings(expandable_segments=True)
Event = tuple[str, int, int]


class Recorded(list[Event]):
    """The segment events of a model, as (action, address, size)."""

    def add(self, action: str, address: int, size_bytes: int, *_rest: object) -> None:
        if action.startswith("segment_"):
            self.append((action, address, size_bytes))


def new_model(
    events: Recorded,
    capacity_bytes: int | None = 400 * MIB,
    settings: AllocatorSettings = EXPANDABLE,
) -> CachingAllocator:
    return CachingAllocator(
        capacity_bytes, settings, addresses=FirstFitAddresses(0), on_event=events.add
    )


def spans(model: CachingAllocator) -> list[tuple[int, int, list[tuple[int, str]]]]:
    return [
        (s["address"], s["total_size"], [(b["size"], b["state"]) for b in s["blocks"]])
        for s in model.segments()
    ]


def test_a_range_grows_by_pages_and_keeps_one_segment() -> None:
    events = Recorded()
    model = new_model(events)

    first = model.malloc(15 * MIB)
    second = model.malloc(30 * MIB)

    # The second request uses the 5 MiB that are left of the first page.
    assert events == [("segment_map", 0, 20 * MIB), ("segment_map", 20 * MIB, 40 * MIB)]
    assert (first.address, second.address) == (0, 15 * MIB)
    assert spans(model) == [
        (
            0,
            60 * MIB,
            [
                (15 * MIB, "active_allocated"),
                (30 * MIB, "active_allocated"),
                (15 * MIB, "inactive"),
            ],
        )
    ]
    assert model.segments()[0]["is_expandable"] is True


def test_small_and_large_requests_and_streams_have_ranges_of_their_own() -> None:
    events = Recorded()
    model = new_model(events)
    for size_bytes, stream in ((1000, 0), (3 * MIB, 0), (3 * MIB, 5)):
        model.malloc(size_bytes, stream)

    # 1 1/8 of 400 MiB in whole pages each.
    assert events == [
        ("segment_map", 0, 2 * MIB),
        ("segment_map", 450 * MIB, 20 * MIB),
        ("segment_map", (450 + 460) * MIB, 20 * MIB),
    ]


def test_expandable_memory_counts_as_reserved_but_not_as_segments_or_splits() -> None:
    model = new_model(Recorded())
    blocks = [model.malloc(size * MIB) for size in (15, 30, 3)]
    model.free(blocks[1])

    stats = flatten(model.memory_stats())

    assert stats["reserved_bytes.large_pool.current"] == 60 * MIB
    assert stats["num_device_alloc"] == 2
    assert {v for k, v in stats.items() if k.startswith(("segment.", "inactive_split"))} == {0}
    assert stats["active_bytes.all.current"] == 18 * MIB


def test_whole_pages_of_free_blocks_are_unmapped() -> None:
    events = Recorded()
    model = new_model(events)
    kept, freed, last = (model.malloc(size * MIB) for size in (15, 50, 10))
    model.free(freed)
    events.clear()

    model.empty_cache()

    # Free were 15 to 65 and 75 to 80: the pages from 20 to 60 lie whole in it.
    assert events == [("segment_unmap", 20 * MIB, 40 * MIB)]
    assert spans(model) == [
        (0, 20 * MIB, [(15 * MIB, "active_allocated"), (5 * MIB, "inactive")]),
        (
            60 * MIB,
            20 * MIB,
            [(5 * MIB, "inactive"), (10 * MIB, "active_allocated"), (5 * MIB, "inactive")],
        ),
    ]
    stats = model.memory_stats()
    assert (model.reserved_bytes, stats["num_device_free"]) == (40 * MIB, 1)

    # The gap is filled first, together with the free memory before it.
    again = model.malloc(30 * MIB)
    assert again.address == 15 * MIB
    assert events[1:] == [("segment_map", 20 * MIB, 40 * MIB)]
    for block in (kept, again, last):
        model.free(block)
    assert spans(model) == [(0, 80 * MIB, [(80 * MIB, "inactive")])]


def test_a_range_without_pages_is_given_up() -> None:
    events = Recorded()
    model = new_model(events)
    model.free(model.malloc(15 * MIB))
    model.empty_cache()
    assert (events[-1], model.reserved_bytes) == (("segment_unmap", 0, 20 * MIB), 0)

    model.malloc(1000)

    # The addresses of the large range are used again.
    assert events[-1] == ("segment_map", 0, 2 * MIB)


def test_pages_are_released_before_a_request_fails() -> None:
    events = Recorded()
    model = new_model(events, capacity_bytes=100 * MIB)
    model.free(model.malloc(90 * MIB))
    assert model.reserved_bytes == 100 * MIB

    block = model.malloc(70 * MIB, stream=2)

    assert [event[0] for event in events] == ["segment_map", "segment_unmap", "segment_map"]
    assert (block.size_bytes, model.reserved_bytes) == (70 * MIB, 80 * MIB)
    stats = model.memory_stats()
    assert (stats["num_alloc_retries"], stats["num_sync_all_streams"]) == (1, 1)


def test_what_was_mapped_before_the_device_ran_out_stays() -> None:
    events = Recorded()
    model = new_model(events, capacity_bytes=120 * MIB)
    low, middle, high = (model.malloc(20 * MIB) for _ in range(3))
    model.free(low)
    model.empty_cache()
    model.free(middle)
    model.malloc(18 * MIB, stream=1)
    events.clear()

    # Room for 100 MiB begins at the unmapped page at 0; one page is mapped there, then 40 MiB
    # would have to follow the block at 40, where the device has none left.
    model.free(high)
    with pytest.raises(OutOfMemoryError):
        model.malloc(110 * MIB)

    assert events[0] == ("segment_map", 0, 20 * MIB)
    assert "segment_unmap" in {event[0] for event in events}
    stats = model.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"]) == (1, 1)
    assert model.reserved_bytes <= 120 * MIB


def test_the_limit_is_checked_with_the_size_of_a_plain_segment() -> None:
    model = CachingAllocator(None, EXPANDABLE, limit_bytes=30 * MIB, addresses=FirstFitAddresses(0))
    model.malloc(18 * MIB)

    with pytest.raises(OutOfMemoryError):
        model.malloc(3 * MIB)  # one page of 20 MiB, as a segment would have

    model.malloc(1000)
    assert model.reserved_bytes == 22 * MIB


def test_the_page_size_follows_the_setting() -> None:
    events = Recorded()
    settings = AllocatorSettings(expandable_segments=True, large_segment_bytes=64 * MIB)
    model = new_model(events, None, settings)

    model.malloc(3 * MIB)

    assert events == [("segment_map", 0, 64 * MIB)]


def test_a_request_larger_than_every_range_does_not_fit() -> None:
    model = new_model(Recorded(), None)

    with pytest.raises(OutOfMemoryError):
        model.malloc(1 << 43)
