from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.pool import BlockPool, expandable_size, may_serve, should_split
from vramscope_analysis.allocator.segment import ExpandableSegment, Segment
from vramscope_analysis.allocator.settings import UNLIMITED

MIB = 1 << 20
DEFAULT = AllocatorSettings()
SPLIT_BELOW_64 = AllocatorSettings(max_split_size_bytes=64 * MIB)


def new_pool(*, is_small: bool = False) -> BlockPool:
    return BlockPool(is_small=is_small, counters=Counters(UNLIMITED))


def block_of(size_bytes: int, pool: BlockPool) -> Block:
    return Segment(4096, size_bytes, 0, pool).first


@pytest.mark.parametrize(
    ("is_small", "block", "size", "splits"),
    [
        (True, 2 * MIB, 2 * MIB - 512, True),
        (True, 2 * MIB, 2 * MIB, False),
        (False, 20 * MIB, 19 * MIB, False),
        (False, 20 * MIB, 19 * MIB - 512, True),
    ],
)
def test_what_is_left_must_pay(is_small: bool, block: int, size: int, splits: bool) -> None:
    assert should_split(block_of(block, new_pool(is_small=is_small)), size, DEFAULT) is splits


def test_oversize_requests_never_split_a_block() -> None:
    block = block_of(100 * MIB, new_pool())

    assert should_split(block, 64 * MIB - 512, SPLIT_BELOW_64)
    assert not should_split(block, 64 * MIB, SPLIT_BELOW_64)


@pytest.mark.parametrize(
    ("block", "size", "serves"),
    [
        (64 * MIB - 512, MIB, True),
        (64 * MIB, MIB, False),
        (84 * MIB - 512, 64 * MIB, True),
        (84 * MIB, 64 * MIB, False),
    ],
)
def test_oversize_blocks_serve_oversize_requests(block: int, size: int, serves: bool) -> None:
    assert may_serve(block, size, SPLIT_BELOW_64) is serves


def test_the_best_fit_leaves_the_free_blocks() -> None:
    pool = new_pool()
    block = block_of(4 * MIB, pool)
    pool.insert(block)

    assert pool.take_best_fit(5 * MIB, 0, DEFAULT) is None
    assert pool.take_best_fit(3 * MIB, 1, DEFAULT) is None
    assert pool.take_best_fit(3 * MIB, 0, DEFAULT) is block
    assert pool.take_best_fit(3 * MIB, 0, DEFAULT) is None


def test_age_counts_the_searches_since_a_block_became_free() -> None:
    pool = new_pool()
    block = block_of(4 * MIB, pool)
    pool.searches = 5
    pool.insert(block)
    pool.searches += 2

    assert pool.age(block) == 2


def test_only_blocks_that_are_a_whole_segment_are_kept_as_such() -> None:
    pool = new_pool()
    whole, rest = block_of(4 * MIB, pool), block_of(8 * MIB, pool)
    rest.segment.split(rest, MIB)
    for block in (rest, whole):
        pool.insert(block)

    assert pool.whole_in_order() == [whole]

    pool.remove(whole)
    assert pool.whole_in_order() == []


def expandable_blocks(pool: BlockPool) -> tuple[Block, Block]:
    """A free block in the middle of a range, and one at its end that can grow."""
    segment = ExpandableSegment(0, 100 * MIB, 0, pool, page_bytes=20 * MIB)
    middle = segment.split(segment.first, 4 * MIB)
    used = segment.split(segment.first.next or middle, 10 * MIB)
    last = segment.split(used.next or used, 3 * MIB)
    for block in (middle, used, last):
        block.mapped = True
    used.allocated = True
    for block in (middle, last):
        pool.insert(block)
    return middle, last


def test_what_can_grow_is_used_last() -> None:
    pool = new_pool()
    middle, last = expandable_blocks(pool)
    assert expandable_size(middle) == 4 * MIB
    assert expandable_size(last) == 86 * MIB

    assert pool.take_best_fit(2 * MIB, 0, DEFAULT, expandable=True) is middle
    assert pool.take_best_fit(2 * MIB, 0, DEFAULT, expandable=True) is last


def test_of_two_that_become_equally_large_the_smaller_one_is_used() -> None:
    pool = new_pool()
    middle, last = expandable_blocks(pool)
    pool.remove(middle)
    equal = block_of(expandable_size(last), pool)
    pool.insert(equal)

    assert pool.take_best_fit(2 * MIB, 0, DEFAULT, expandable=True) is last


def test_a_plain_block_is_used_before_one_that_can_grow() -> None:
    pool = new_pool()
    middle, _last = expandable_blocks(pool)
    pool.remove(middle)
    plain = block_of(80 * MIB, pool)
    pool.insert(plain)

    assert pool.take_best_fit(2 * MIB, 0, DEFAULT, expandable=True) is plain


def test_expandable_blocks_are_passed_over_while_the_option_is_off() -> None:
    pool = new_pool()
    expandable_blocks(pool)
    assert pool.take_best_fit(2 * MIB, 0, DEFAULT) is None
    plain = block_of(60 * MIB, pool)
    pool.insert(plain)

    assert pool.take_best_fit(2 * MIB, 0, DEFAULT) is plain


def test_with_the_option_every_block_is_split_down_to_the_smallest() -> None:
    block = block_of(20 * MIB, new_pool())

    assert should_split(block, 20 * MIB - 512, SPLIT_BELOW_64, expandable=True)
    assert not should_split(block, 20 * MIB, SPLIT_BELOW_64, expandable=True)
    assert not should_split(block, 20 * MIB - 512, SPLIT_BELOW_64)


def test_only_free_neighbours_of_the_same_kind_are_absorbed() -> None:
    pool = new_pool()
    middle, last = expandable_blocks(pool)
    used = middle.next
    assert used is not None

    assert pool.absorb(middle, None) == 0
    assert pool.absorb(middle, used) == 0
    assert pool.absorb(last, last.next) == 0
    used.allocated = False
    assert pool.absorb(used, middle) == 4 * MIB
    assert (used.address, used.size_bytes, list(pool.free)) == (0, 14 * MIB, [last])
