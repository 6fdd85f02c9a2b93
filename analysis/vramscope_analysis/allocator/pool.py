"""One pool: the free blocks that one kind of request is served from."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters, StatGroup
from vramscope_analysis.allocator.free_blocks import FreeBlocks
from vramscope_analysis.allocator.rounding import MIN_BLOCK_BYTES, SMALL_BYTES
from vramscope_analysis.allocator.settings import AllocatorSettings

DEFAULT_POOL_ID: Final = (0, 0)
"""``segment_pool_id`` of what belongs to no CUDA graph and no MemPool."""


class BlockPool:
    """Free blocks of the small or the large pool (``struct BlockPool``)."""

    __slots__ = ("free", "is_small", "pool_id", "searches", "stats", "stats_all")

    def __init__(
        self, *, is_small: bool, counters: Counters, pool_id: tuple[int, int] = DEFAULT_POOL_ID
    ) -> None:
        self.is_small = is_small
        self.pool_id = pool_id
        self.free = FreeBlocks()
        self.searches = 0  # get_free_blocks_call_count: the clock of the garbage collection
        self.stats_all: StatGroup = counters.all
        self.stats: StatGroup = counters.small_pool if is_small else counters.large_pool

    def insert(self, block: Block) -> None:
        """A block becomes free (``insert_into_blocks``)."""
        block.gc_count_base = self.searches
        self.free.insert(block)

    def age(self, block: Block) -> int:
        """Searches since the block became free (``Block::gc_count``)."""
        return self.searches - block.gc_count_base

    def take_best_fit(
        self, size_bytes: int, stream: int, settings: AllocatorSettings
    ) -> Block | None:
        """Take the smallest block of the stream that is large enough (``get_free_block``)."""
        if settings.garbage_collection_threshold:
            self.searches += 1
        candidates = self.free.of_stream(stream)
        position = candidates.at_least(size_bytes)
        if position == len(candidates.keys):
            return None
        block = candidates.blocks[position]
        if not may_serve(block.size_bytes, size_bytes, settings):
            return None
        del candidates.keys[position]
        del candidates.blocks[position]
        return block


def may_serve(block_bytes: int, size_bytes: int, settings: AllocatorSettings) -> bool:
    """Whether the oversize rules let a block serve a request (``get_free_block``)."""
    limit = settings.max_split_size_bytes
    if size_bytes < limit:
        return block_bytes < limit
    return block_bytes < size_bytes + settings.max_non_split_rounding_bytes


def should_split(block: Block, size_bytes: int, settings: AllocatorSettings) -> bool:
    """Whether what is left of a block becomes a free block (``should_split``)."""
    remaining = block.size_bytes - size_bytes
    if block.pool.is_small:
        return remaining >= MIN_BLOCK_BYTES
    return size_bytes < settings.max_split_size_bytes and remaining > SMALL_BYTES
