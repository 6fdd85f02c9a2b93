from __future__ import annotations

from vramscope_analysis.allocator import AllocatorSettings, FirstFitAddresses
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.state import AllocatorState
from vramscope_analysis.allocator.version_rules import rules_of

MIB = 1 << 20


def test_segments_are_taken_up_to_the_capacity_and_given_back() -> None:
    events: list[tuple[str, int, int, int, tuple[int, int]]] = []
    state = AllocatorState(
        AllocatorSettings(max_split_size_bytes=30 * MIB),
        rules_of((2, 11)),
        capacity_bytes=50 * MIB,
        limit_bytes=None,
        addresses=FirstFitAddresses(0),
        on_event=lambda *event: events.append(event),
    )
    counters = state.counters
    pool = BlockPool(is_small=False, counters=counters)
    device = DeviceMemory(state)

    first, second = device.take(pool, 30 * MIB, 2), device.take(pool, 20 * MIB, 2)
    assert device.take(pool, 2 * MIB, 2) is None
    assert first is not None
    assert second is not None
    assert counters.oversize_segments.current == 1
    pool.insert(first)
    device.release(first)

    assert list(device.segments) == [second.address]
    assert state.reserved_bytes == counters.large_pool.reserved_bytes.current == 20 * MIB
    assert counters.oversize_segments.as_dict() == {
        "current": 0,
        "peak": 1,
        "allocated": 1,
        "freed": 1,
    }
    assert (counters.num_device_alloc, counters.num_device_free) == (2, 1)
    assert events == [
        ("segment_alloc", 0, 30 * MIB, 2, (0, 0)),
        ("segment_alloc", 30 * MIB, 20 * MIB, 2, (0, 0)),
        ("segment_free", 0, 30 * MIB, 2, (0, 0)),
    ]
    assert len(pool.free) == 0
