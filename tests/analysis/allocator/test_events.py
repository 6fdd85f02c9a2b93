from __future__ import annotations

from vramscope_analysis.allocator import CachingAllocator, FirstFitAddresses

MIB = 1 << 20


def test_events_come_in_the_order_and_with_the_sizes_of_a_trace() -> None:
    events: list[tuple[str, int, int, int, tuple[int, int]]] = []
    model = CachingAllocator(
        1 << 30,
        addresses=FirstFitAddresses(0),
        on_event=lambda *event: events.append(event),
    )

    block = model.malloc(1000, stream=6)
    model.free(block)
    model.empty_cache()

    assert events == [
        ("segment_alloc", 0, 2 * MIB, 6, (0, 0)),
        ("alloc", 0, 1000, 6, (0, 0)),
        ("free_requested", 0, 1000, 6, (0, 0)),
        ("free_completed", 0, 1000, 6, (0, 0)),
        ("segment_free", 0, 2 * MIB, 6, (0, 0)),
    ]
