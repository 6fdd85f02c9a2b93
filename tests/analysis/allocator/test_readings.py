from __future__ import annotations

from vramscope_analysis.allocator import AllocatorSettings, CachingAllocator

MIB = 1 << 20


def test_an_allocator_tells_what_holds_now() -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    model = CachingAllocator(100 * MIB, settings, limit_bytes=60 * MIB)
    model.malloc(3 * MIB)

    assert (model.reserved_bytes, model.allocated_bytes) == (20 * MIB, 3 * MIB)
    assert (model.capacity_bytes, model.limit_bytes) == (100 * MIB, 60 * MIB)
    assert model.allowed_bytes == 60 * MIB
    assert model.settings is settings
    assert model.counters.all.active.current == 1


def test_events_begin_and_end_while_it_runs() -> None:
    seen: list[str] = []

    def see(action: str, *_rest: object) -> None:
        seen.append(action)

    model = CachingAllocator(None)
    model.malloc(1)
    model.on_event = see
    assert model.on_event is see
    block = model.malloc(1)
    model.on_event = None
    model.free(block)

    assert seen == ["alloc"]


def test_the_segments_of_one_pool() -> None:
    model = CachingAllocator(None)
    model.malloc(1, pool_id=(0, 1))
    model.malloc(1)

    assert [segment["segment_pool_id"] for segment in model.segments((0, 1))] == [(0, 1)]
    assert len(model.segments()) == 2
    assert model.segments((0, 2)) == []
