from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.cache_release import (
    collect_garbage,
    release_blocks,
    release_oversize_blocks,
)
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.expandable_memory import ExpandableMemory
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.state import AllocatorState
from vramscope_analysis.allocator.version_rules import rules_of

MIB = 1 << 20


class Memory:
    """A device with free segments, and what was given back to it, in MiB."""

    def __init__(self, settings: AllocatorSettings | None = None) -> None:
        self.settings = settings if settings is not None else AllocatorSettings()
        self.released: list[tuple[str, int]] = []
        state = AllocatorState(
            self.settings,
            rules_of((2, 11)),
            capacity_bytes=None,
            limit_bytes=None,
            addresses=FirstFitAddresses(0),
            on_event=self._see,
        )
        self.pool = BlockPool(is_small=False, counters=state.counters)
        self.device = DeviceMemory(state)
        self.expandable = ExpandableMemory(state)

    def _see(self, action: str, _address: int, size_bytes: int, *_rest: object) -> None:
        if action in ("segment_free", "segment_unmap"):
            self.released.append((action, size_bytes // MIB))

    def free_segment(self, size_bytes: int, stream: int = 0) -> Block:
        block = self.device.take(self.pool, size_bytes, stream)
        assert block is not None
        self.pool.insert(block)
        return block

    def free_pages(self, size_bytes: int) -> Block:
        block = self.expandable.take(self.pool, size_bytes, 0)
        assert block is not None
        self.pool.insert(block)
        return block

    def sizes(self) -> list[int]:
        return [size for _action, size in self.released]


def test_segments_go_in_set_order_and_pages_after_them() -> None:
    memory = Memory()
    memory.free_pages(20 * MIB)
    for size, stream in ((40, 1), (30, 1), (60, 0)):
        memory.free_segment(size * MIB, stream)
    split = memory.free_segment(80 * MIB)
    memory.pool.remove(split)
    memory.pool.insert(split.segment.split(split, 10 * MIB))

    release_blocks(memory.pool, memory.device, memory.expandable)

    assert memory.released == [
        ("segment_free", 60),
        ("segment_free", 30),
        ("segment_free", 40),
        ("segment_unmap", 20),
    ]
    assert [block.size_bytes for block in memory.pool.free] == [10 * MIB]


@pytest.mark.parametrize(
    ("wanted", "enough", "released"),
    [
        (35, True, [40]),  # the smallest that is large enough alone
        (20, True, [30]),  # but an oversize one in any case
        (65, True, [60, 40]),  # the largest first
        (131, False, [60, 40, 30]),
    ],
)
def test_just_enough_oversize_segments_are_released(
    wanted: int, enough: bool, released: list[int]
) -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    memory = Memory(settings)
    for size in (20, 30, 40, 60):
        memory.free_segment(size * MIB)
    memory.free_segment(200 * MIB, stream=9)

    assert release_oversize_blocks(memory.pool, wanted * MIB, 0, settings, memory.device) is enough
    assert memory.sizes() == released


def test_nothing_is_oversize_without_the_option() -> None:
    memory = Memory()
    memory.free_segment(60 * MIB)

    assert not release_oversize_blocks(memory.pool, 50 * MIB, 0, memory.settings, memory.device)
    assert memory.released == []


def test_pages_are_stepped_over() -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    memory = Memory(settings)
    memory.free_pages(100 * MIB)
    memory.free_segment(40 * MIB)
    memory.free_segment(50 * MIB)

    # The first candidate for 60 MiB is expandable: so the largest below it are taken.
    assert release_oversize_blocks(memory.pool, 60 * MIB, 0, settings, memory.device)
    assert memory.released == [("segment_free", 50), ("segment_free", 40)]


def test_what_became_oversize_as_a_piece_stays() -> None:
    settings = AllocatorSettings(max_split_size_bytes=30 * MIB)
    memory = Memory(settings)
    piece = memory.free_segment(80 * MIB)
    memory.pool.remove(piece)
    memory.pool.insert(piece.segment.split(piece, 40 * MIB))

    assert not release_oversize_blocks(memory.pool, 35 * MIB, 0, settings, memory.device)
    assert not release_oversize_blocks(memory.pool, 45 * MIB, 0, settings, memory.device)
    assert memory.released == []


def aged(memory: Memory, sizes_and_ages: list[tuple[int, int]]) -> None:
    for size, age in sorted(sizes_and_ages, key=lambda entry: -entry[1]):
        memory.pool.searches = 100 - age
        memory.free_segment(size * MIB)
    memory.pool.searches = 100


@pytest.mark.parametrize(
    ("excess", "released"),
    [
        # Mean age 25: two are older. They go in set order, all of them.
        (1, [22, 24]),
        (46, [22, 24]),
        # Then the mean is 5.
        (47, [22, 24, 20]),
        (67, [22, 24, 20, 26]),
        (999, [22, 24, 20, 26]),
    ],
)
def test_rounds_of_garbage_collection(excess: int, released: list[int]) -> None:
    memory = Memory()
    aged(memory, [(20, 8), (22, 30), (24, 60), (26, 2)])

    collect_garbage(memory.pool, excess * MIB, memory.device)

    assert memory.sizes() == released


def test_pages_and_pieces_are_no_garbage() -> None:
    memory = Memory()
    memory.free_pages(20 * MIB)
    piece = memory.free_segment(80 * MIB)
    memory.pool.remove(piece)
    memory.pool.insert(piece.segment.split(piece, 40 * MIB))
    memory.pool.searches = 50

    collect_garbage(memory.pool, 999 * MIB, memory.device)

    assert memory.released == []
