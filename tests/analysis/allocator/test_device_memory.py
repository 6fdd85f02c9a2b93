from __future__ import annotations

from vramscope_analysis.allocator import AllocatorSettings, FirstFitAddresses
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.pool import BlockPool

MIB = 1 << 20


def test_segments_are_taken_up_to_the_capacity_and_given_back() -> None:
    events: list[tuple[str, int, int, int]] = []
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    counters = Counters(settings.max_split_size_bytes)
    pool = BlockPool(is_small=False, counters=counters)
    device = DeviceMemory(
        50 * MIB,
        None,
        settings,
        counters,
        FirstFitAddresses(0),
        lambda *event: events.append(event),
    )

    first, second = device.take(pool, 30 * MIB, 2), device.take(pool, 20 * MIB, 2)
    assert device.take(pool, 2 * MIB, 2) is None
    assert first is not None
    assert second is not None
    assert counters.oversize_segments.current == 1
    pool.insert(first)
    device.release(first)

    assert list(device.segments) == [second.address]
    assert device.reserved_bytes == counters.large_pool.reserved_bytes.current == 20 * MIB
    assert counters.oversize_segments.as_dict() == {
        "current": 0,
        "peak": 1,
        "allocated": 1,
        "freed": 1,
    }
    assert (counters.num_device_alloc, counters.num_device_free) == (2, 1)
    assert events == [
        ("segment_alloc", 0, 30 * MIB, 2),
        ("segment_alloc", 30 * MIB, 20 * MIB, 2),
        ("segment_free", 0, 30 * MIB, 2),
    ]
    assert len(pool.free) == 0
