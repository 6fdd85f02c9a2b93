from __future__ import annotations

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.free_blocks import FreeBlocks
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import Segment
from vramscope_analysis.allocator.settings import UNLIMITED

POOL = BlockPool(is_small=False, counters=Counters(UNLIMITED))


def block(address: int, size_bytes: int, stream: int = 0) -> Block:
    return Segment(address, size_bytes, stream, POOL).first


def test_blocks_come_by_stream_then_size_then_address() -> None:
    free = FreeBlocks()
    wanted = [block(9, 512), block(3, 1024), block(7, 1024), block(1, 512, stream=4)]
    for entry in reversed(wanted):
        free.insert(entry)

    assert list(free) == wanted
    assert len(free) == 4


def test_the_best_fit_is_the_smallest_then_the_lowest() -> None:
    free = FreeBlocks()
    low, high, larger = block(3, 1024), block(7, 1024), block(1, 2048)
    for entry in (larger, high, low):
        free.insert(entry)
    stream = free.of_stream(0)

    assert stream.blocks[stream.at_least(1)] is low
    assert stream.blocks[stream.at_least(1024)] is low
    assert stream.blocks[stream.at_least(1025)] is larger
    assert stream.at_least(2049) == len(stream.keys)
    assert free.largest(0) == 2048
    assert free.largest(1) == 0


def test_the_right_block_of_many_equal_ones_is_removed() -> None:
    free = FreeBlocks()
    blocks = [block(address, 512) for address in range(0, 5120, 512)]
    for entry in blocks:
        free.insert(entry)

    free.remove(blocks[4])

    assert list(free) == blocks[:4] + blocks[5:]
