from __future__ import annotations

from tests.support.allocator_traces import load_snapshot
from vramscope_analysis.allocator import CachingAllocator

MIB = 1 << 20


def test_a_segment_has_the_keys_of_a_real_one() -> None:
    model = CachingAllocator(1 << 30)
    model.malloc(100)
    (segment,) = model.segments()
    recorded = load_snapshot("conv__default").segment(0)

    assert segment.keys() == recorded.keys() | {"frames"}
    assert segment["blocks"][0].keys() == recorded["blocks"][0].keys() | {"frames"}


def test_totals_count_pending_blocks_as_active_only() -> None:
    model = CachingAllocator(1 << 30)
    kept, pending, freed = (model.malloc(size) for size in (100, 600, 2000))
    model.record_stream(pending, 9)
    model.free(pending)
    model.free(freed)

    (segment,) = model.segments()

    totals = [segment[f"{name}_size"] for name in ("total", "allocated", "active", "requested")]
    assert totals == [2 * MIB, 512, 512 + 1024, 700]
    assert (segment["segment_type"], segment["segment_pool_id"]) == ("small", (0, 0))
    assert [(b["address"], b["size"], b["requested_size"]) for b in segment["blocks"]] == [
        (kept.address, 512, 100),
        (kept.address + 512, 1024, 600),
        (kept.address + 1536, 2 * MIB - 1536, 2000),
    ]


def test_segments_are_sorted_by_address() -> None:
    model = CachingAllocator(1 << 30)
    low = model.malloc(40 * MIB)
    model.malloc(40 * MIB)
    model.free(low)
    model.empty_cache()
    model.malloc(20 * MIB)

    addresses = [segment["address"] for segment in model.segments()]

    assert addresses == sorted(addresses)
    assert len(addresses) == 2
