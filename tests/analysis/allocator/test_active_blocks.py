from __future__ import annotations

import pytest

from vramscope_analysis.allocator import CachingAllocator

MIB = 1 << 20
GRAPH = (0, 1)


def events_of(model: CachingAllocator) -> list[tuple[str, int]]:
    events: list[tuple[str, int]] = []

    def see(action: str, address: int, *_rest: object) -> None:
        events.append((action, address))

    model.on_event = see
    return events


def test_uses_recorded_in_a_capture_are_over_with_it() -> None:
    model = CachingAllocator(None)
    inside, before, kept = (model.malloc(3 * MIB) for _ in range(3))
    model.record_stream(before, 8)
    model.begin_allocate_to_pool(GRAPH, is_capture=True, streams=[9])
    model.record_stream(inside, 9)
    model.record_stream(before, 9)
    events = events_of(model)
    for block in (inside, before):
        model.free(block)
    # Nothing is completed while the capture lasts, not even by a request of another stream.
    model.malloc(100)
    assert [action for action, _address in events] == [
        "free_requested",
        "free_requested",
        "segment_alloc",
        "alloc",
    ]
    model.end_allocate_to_pool(GRAPH)
    del events[:]

    model.malloc(100)

    # Stream 8 may still use the other block.
    assert events[0] == ("free_completed", inside.address)
    assert [action for action, _address in events] == ["free_completed", "alloc"]
    assert (inside.state, before.state, kept.state) == (
        "inactive",
        "active_pending_free",
        "active_allocated",
    )
    model.complete_free(before)
    assert before.state == "inactive"


def test_a_block_that_the_graph_itself_is_done_with_is_free_in_the_capture() -> None:
    model = CachingAllocator(None)
    model.begin_allocate_to_pool(GRAPH, is_capture=True)
    block = model.malloc(3 * MIB, stream=9)
    address = block.address
    model.record_stream(block, 8)
    model.free(block)

    model.complete_free(block)

    assert model.malloc(3 * MIB, stream=9).address == address


def test_completing_what_does_not_wait_is_refused() -> None:
    model = CachingAllocator(None)
    block = model.malloc(100)

    with pytest.raises(ValueError, match="expected a block that was freed and waits"):
        model.complete_free(block)
    model.free(block)
    with pytest.raises(ValueError, match="expected a block that was freed and waits"):
        model.complete_free(block)


def test_a_flush_waits_for_deferred_blocks_too() -> None:
    model = CachingAllocator(None)
    block = model.malloc(3 * MIB)
    model.begin_allocate_to_pool(GRAPH, is_capture=True)
    model.record_stream(block, 8)
    model.free(block)
    model.end_allocate_to_pool(GRAPH)

    model.empty_cache()

    assert model.reserved_bytes == 0


def test_neighbours_that_wait_are_not_joined() -> None:
    model = CachingAllocator(None)
    first, second, third = (model.malloc(3 * MIB) for _ in range(3))
    model.record_stream(second, 8)
    for block in (first, second, third):
        model.free(block)

    states = [block["state"] for block in model.segments()[0]["blocks"]]
    assert states == ["inactive", "active_pending_free", "inactive"]
    model.complete_free(second)
    assert [block["size"] for block in model.segments()[0]["blocks"]] == [20 * MIB]


def test_uses_of_an_earlier_capture_do_not_shorten_a_later_wait() -> None:
    model = CachingAllocator(None)
    block = model.malloc(20 * MIB)
    for streams in ([9], [8, 9]):
        model.begin_allocate_to_pool(GRAPH, is_capture=True)
        model.record_stream(block, streams[0])
        model.end_allocate_to_pool(GRAPH)
        if streams == [9]:
            model.begin_allocate_to_pool((0, 2), is_capture=True)
            model.free(block)
            model.end_allocate_to_pool((0, 2))
            again = model.malloc(20 * MIB)
            assert again is block
            model.record_stream(block, 9)
    model.begin_allocate_to_pool((0, 2), is_capture=True)
    model.free(block)
    model.end_allocate_to_pool((0, 2))

    model.malloc(1)

    # Stream 9 was recorded outside of a capture this time.
    assert block.state == "active_pending_free"
