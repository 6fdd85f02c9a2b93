"""Block sizes by rounding, and by the rest that was too small to split off."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.made_moments import KIB, MIB, block, entry, memory, segment
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.rounding import round_size
from vramscope_analysis.moments.block_sizes import rounded_sizes


def sizes(trace: list[dict[str, Any]], **more: Any) -> list[int]:
    found: list[int] = memory(trace, **more).lifetimes.size.tolist()
    return found


def freed(address: int, size: int) -> list[dict[str, Any]]:
    return [entry("free_requested", address, size), entry("free_completed", address, size)]


def test_requests_are_rounded_as_the_allocator_does() -> None:
    requests = np.array([1, 511, 512, 513, 2 * MIB + 1, 3 * MIB], np.int64)
    for divisions in (0, 4):
        settings = AllocatorSettings(roundup_power2_divisions=(divisions,) * 16)
        expected = [round_size(int(size), settings) for size in requests]
        assert rounded_sizes(requests, settings).tolist() == expected


def test_a_small_rest_of_a_large_block_belongs_to_it() -> None:
    trace = [entry("segment_alloc", 0, 20 * MIB), entry("alloc", 0, 19 * MIB + 512)]
    assert sizes([*trace, *freed(0, 19 * MIB + 512)]) == [20 * MIB]
    trace = [entry("segment_alloc", 0, 20 * MIB), entry("alloc", 0, 19 * MIB - 512)]
    assert sizes([*trace, *freed(0, 19 * MIB - 512)]) == [19 * MIB - 512]


def test_the_free_block_ends_at_the_next_live_one() -> None:
    trace = [
        entry("segment_alloc", 0, 20 * MIB),
        entry("alloc", 0, 4 * MIB),
        entry("alloc", 4 * MIB, 4 * MIB),
        *freed(0, 4 * MIB),
        entry("alloc", 0, 4 * MIB - 700 * KIB),
        *freed(0, 4 * MIB - 700 * KIB),
    ]
    assert sizes(trace) == [4 * MIB, 4 * MIB, 4 * MIB]


def test_expandable_segments_split_everything() -> None:
    trace = [entry("segment_map", 0, 20 * MIB), entry("alloc", 0, 20 * MIB - 512)]
    trace += freed(0, 20 * MIB - 512)
    assert sizes(trace, settings={"expandable_segments": True}) == [20 * MIB - 512]


def test_a_segment_from_before_the_recording_has_an_edge_too() -> None:
    trace = [entry("alloc", 0, 2 * MIB - 512), *freed(0, 2 * MIB - 512)]
    assert sizes(trace, segments=[segment(0, [block(2 * MIB)])]) == [2 * MIB]


def test_oversize_blocks_are_never_split() -> None:
    trace = [entry("segment_alloc", 0, 64 * MIB), entry("alloc", 0, 50 * MIB), *freed(0, 50 * MIB)]
    assert sizes(trace, settings={"max_split_size": 32 * MIB}) == [64 * MIB]


def test_settings_that_make_no_sense_cost_no_answer() -> None:
    trace = [entry("alloc", 0, 100), *freed(0, 100)]
    assert sizes(trace, settings={"max_split_size": "all"}) == [512]
