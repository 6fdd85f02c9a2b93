from __future__ import annotations

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import ExpandableSegment, Segment
from vramscope_analysis.allocator.settings import UNLIMITED


def new_segment(size_bytes: int = 4096) -> Segment:
    return Segment(1000, size_bytes, 3, BlockPool(is_small=True, counters=Counters(UNLIMITED)))


def layout(segment: Segment) -> list[tuple[int, int]]:
    blocks = list(segment.blocks())
    backwards: list[Block] = []
    block: Block | None = blocks[-1]
    while block is not None:
        backwards.append(block)
        block = block.prev
    assert backwards[::-1] == blocks, "the links back differ from the links forward"
    return [(block.address, block.size_bytes) for block in blocks]


def test_a_new_segment_is_one_block_of_its_stream() -> None:
    segment = new_segment()

    assert layout(segment) == [(1000, 4096)]
    assert segment.first.stream == 3


def test_the_front_is_cut_off() -> None:
    segment = new_segment()
    rest = segment.first
    first = segment.split(rest, 512)
    second = segment.split(rest, 1024)

    assert list(segment.blocks()) == [first, second, rest]
    assert layout(segment) == [(1000, 512), (1512, 1024), (2536, 2560)]


def test_neighbours_are_absorbed_from_both_sides() -> None:
    segment = new_segment()
    rest = segment.first
    first, second = segment.split(rest, 512), segment.split(rest, 1024)

    segment.absorb(second, first)
    assert layout(segment) == [(1000, 1536), (2536, 2560)]
    segment.absorb(second, rest)
    assert layout(segment) == [(1000, 4096)]
    assert not second.is_split
    assert first.prev is first.next is None


def test_the_tail_is_cut_off() -> None:
    segment = new_segment()
    rest = segment.first
    front = segment.split(rest, 512)

    tail = segment.cut_tail(front, 100)

    assert list(segment.blocks()) == [front, tail, rest]
    assert layout(segment) == [(1000, 412), (1412, 100), (1512, 3584)]


def test_pages_of_an_expandable_segment() -> None:
    pool = BlockPool(is_small=False, counters=Counters(UNLIMITED))
    segment = ExpandableSegment(1000, 50, 3, pool, page_bytes=10)

    assert not segment.first.mapped
    assert [segment.pages_over(size) for size in (1, 10, 11)] == [10, 10, 20]
    rest = segment.first
    front = segment.split(rest, 5)
    middle = segment.split(rest, 27)
    assert segment.pages_within(front) == (1000, 0)
    assert segment.pages_within(segment.split(middle, 3))[1] == 0
    assert segment.pages_within(middle) == (1010, 20)
    assert segment.pages_within(rest) == (1040, 10)
