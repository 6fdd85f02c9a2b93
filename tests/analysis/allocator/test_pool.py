from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.pool import BlockPool, may_serve, should_split
from vramscope_analysis.allocator.segment import Segment
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


def test_age_counts_searches_while_garbage_collection_is_on() -> None:
    pool = new_pool()
    block = block_of(4 * MIB, pool)
    pool.insert(block)
    pool.take_best_fit(5 * MIB, 0, DEFAULT)
    assert pool.age(block) == 0

    collecting = AllocatorSettings(garbage_collection_threshold=0.5)
    pool.take_best_fit(5 * MIB, 0, collecting)
    pool.take_best_fit(5 * MIB, 0, collecting)
    assert pool.age(block) == 2
