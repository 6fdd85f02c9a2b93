from __future__ import annotations

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import Segment
from vramscope_analysis.allocator.settings import UNLIMITED
from vramscope_analysis.allocator.unmapped_blocks import UnmappedBlocks

POOL = BlockPool(is_small=False, counters=Counters(UNLIMITED))


def block(address: int, stream: int) -> Block:
    return Segment(address, 512, stream, POOL).first


def test_blocks_come_by_address_in_their_stream() -> None:
    unmapped = UnmappedBlocks()
    high, low, other = block(9000, 1), block(1000, 1), block(5000, 2)
    for entry in (high, low, other):
        unmapped.insert(entry)

    assert list(unmapped.of_stream(1)) == [low, high]
    assert list(unmapped.of_stream(2)) == [other]
    assert list(unmapped.of_stream(3)) == []

    unmapped.remove(low)
    assert list(unmapped.of_stream(1)) == [high]
    assert len(unmapped) == 2


def test_blocks_at_one_address_are_told_apart() -> None:
    unmapped = UnmappedBlocks()
    first, second, third = block(1000, 1), block(1000, 1), block(1000, 1)
    for entry in (first, second, third):
        unmapped.insert(entry)

    unmapped.remove(second)

    assert list(unmapped.of_stream(1)) == [first, third]
