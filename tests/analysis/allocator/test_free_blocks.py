from __future__ import annotations

import random

import pytest

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.free_blocks import (
    CHUNK_KEYS,
    SEARCH_ORDERS,
    FreeBlocks,
    StreamBlocks,
)
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import Segment
from vramscope_analysis.allocator.settings import UNLIMITED
from vramscope_analysis.allocator.version_rules import TieBreak

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

    assert stream.first_at_least(1) is low
    assert stream.first_at_least(1024) is low
    assert stream.after(low) is high
    assert stream.first_at_least(1025) is larger
    assert stream.first_at_least(2049) is None
    assert stream.after(larger) is None
    assert list(stream.before(2048)) == [high, low]
    assert list(stream.before(5000)) == [larger, high, low]
    assert free.largest(0) == 2048
    assert free.largest(1) == 0


def test_the_right_block_of_many_equal_ones_is_removed() -> None:
    free = FreeBlocks()
    blocks = [block(address, 512) for address in range(0, 5120, 512)]
    for entry in blocks:
        free.insert(entry)

    free.remove(blocks[4])

    assert list(free) == blocks[:4] + blocks[5:]


def test_many_blocks_keep_their_order_while_they_come_and_go() -> None:
    generator = random.Random(4)
    sizes = [generator.randrange(1, 1 << 20) for _ in range(5 * CHUNK_KEYS)]
    blocks = [block(address, size) for address, size in enumerate(sizes)]
    stream = StreamBlocks(SEARCH_ORDERS[TieBreak.ADDRESS])
    for entry in blocks:
        stream.insert(entry)
    kept = sorted(blocks[::7], key=lambda entry: (entry.size_bytes, entry.address))
    generator.shuffle(blocks)
    for entry in blocks:
        if entry.address % 7:
            stream.remove(entry)

    assert list(stream) == kept
    assert len(stream) == len(kept)
    assert [stream.after(entry) for entry in kept] == [*kept[1:], None]
    assert list(stream.before(1 << 21)) == kept[::-1]
    middle = kept[len(kept) // 2].size_bytes
    assert stream.first_at_least(middle) is next(b for b in kept if b.size_bytes >= middle)
    for entry in kept:
        stream.remove(entry)
    assert (list(stream), stream.last(), stream.first_at_least(0)) == ([], None, None)


@pytest.mark.parametrize(
    ("tie_break", "order"),
    [
        (TieBreak.ADDRESS, [0, 1, 2, 3]),
        (TieBreak.OLDEST_BLOCK, [2, 1, 3, 0]),
        (TieBreak.OLDEST_MEMORY, [1, 2, 3, 0]),
    ],
)
def test_ties_are_broken_as_the_release_does(tie_break: TieBreak, order: list[int]) -> None:
    free = FreeBlocks(SEARCH_ORDERS[tie_break])
    blocks = [block(address, 1024) for address in (100, 200, 300, 400)]
    # Numbers of the blocks; 100 to 300 lie in one piece of memory in the last case.
    numbers = (9, 5, 4, 7) if tie_break is TieBreak.OLDEST_BLOCK else (9, 5, 5, 7)
    for entry, number in zip(blocks, numbers, strict=True):
        entry.registration = number
        free.insert(entry)

    assert [blocks.index(entry) for entry in free] == order
    assert free.of_stream(0).first_at_least(1024) is blocks[order[0]]
    assert free.of_stream(0).first_at_least(1025) is None


def test_small_blocks_come_back_after_all_small_ones_had_gone() -> None:
    blocks = [block(size, size) for size in range(1, 3 * CHUNK_KEYS)]
    stream = StreamBlocks(SEARCH_ORDERS[TieBreak.ADDRESS])
    for entry in blocks:
        stream.insert(entry)
    for entry in blocks[:-10]:
        stream.remove(entry)

    stream.insert(blocks[0])

    assert list(stream) == [blocks[0], *blocks[-10:]]
    assert stream.first_at_least(1) is blocks[0]
    stream.remove(blocks[0])
    assert stream.first_at_least(1) is blocks[-10]
