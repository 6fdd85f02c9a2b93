"""One pool: the free blocks that one kind of request is served from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters, StatGroup
from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.allocator.free_blocks import SEARCH_ORDERS, FreeBlocks, StreamBlocks
from vramscope_analysis.allocator.rounding import MIN_BLOCK_BYTES, SMALL_BYTES
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.unmapped_blocks import UnmappedBlocks
from vramscope_analysis.allocator.version_rules import TieBreak

if TYPE_CHECKING:
    from vramscope_analysis.allocator.private_pools import PrivatePool

DEFAULT_POOL_ID: Final[PoolId] = (0, 0)
"""``segment_pool_id`` of what belongs to no CUDA graph and no MemPool."""


class BlockPool:
    """Free blocks of the small or the large pool (``struct BlockPool``).

    ``whole`` holds those free blocks that are a segment of their own, by the time of their
    insertion: only these can go back to the device, and the order gives their age.

    Args:
        is_small: whether it serves requests up to 1 MiB.
        counters: what its changes are counted in.
        owner: the private pool that it is a half of; ``None``: the default pool.
        tie_break: which of several free blocks of equal size is taken.
        block_numbers: where new blocks get their number from, if that breaks ties.
    """

    __slots__ = (
        "block_numbers",
        "free",
        "is_small",
        "never_splits",
        "owner",
        "pool_id",
        "searches",
        "stats",
        "stats_all",
        "unmapped",
        "whole",
        "whole_bases",
    )

    def __init__(
        self,
        *,
        is_small: bool,
        counters: Counters,
        owner: PrivatePool | None = None,
        tie_break: TieBreak = TieBreak.ADDRESS,
        block_numbers: Iterator[int] | None = None,
    ) -> None:
        self.is_small = is_small
        self.owner = owner
        self.pool_id = DEFAULT_POOL_ID if owner is None else owner.pool_id
        self.never_splits = False
        self.block_numbers = block_numbers
        self.free = FreeBlocks(SEARCH_ORDERS[tie_break])
        self.unmapped = UnmappedBlocks()
        self.whole: dict[Block, None] = {}
        self.whole_bases = 0  # sum of their gc_count_base
        self.searches = 0  # get_free_blocks_call_count: the clock of the garbage collection
        self.stats_all: StatGroup = counters.all
        self.stats: StatGroup = counters.small_pool if is_small else counters.large_pool

    def insert(self, block: Block) -> None:
        """A block becomes free (``insert_into_blocks``)."""
        block.gc_count_base = self.searches
        self.free.insert(block)
        if block.prev is None and block.next is None:
            self.whole[block] = None
            self.whole_bases += self.searches

    def remove(self, block: Block) -> None:
        """A free block is taken or goes. Must come before it gains or loses neighbours."""
        self.free.remove(block)
        if block.prev is None and block.next is None:
            del self.whole[block]
            self.whole_bases -= block.gc_count_base

    def absorb(self, block: Block, neighbour: Block | None) -> int:
        """Join a neighbour that is as free and as mapped (``try_merge_blocks``).

        Returns:
            The bytes that the block grew by; 0 if the neighbour is in use or absent.
        """
        if (
            neighbour is None
            or neighbour.allocated
            or neighbour.pending
            or neighbour.mapped is not block.mapped
        ):
            return 0
        if neighbour.mapped:
            self.free.remove(neighbour)
        else:
            self.unmapped.remove(neighbour)
        block.segment.absorb(block, neighbour)
        return neighbour.size_bytes

    def whole_in_order(self) -> list[Block]:
        """The free blocks that are a segment of their own, in set order."""
        return sorted(self.whole, key=set_order)

    def age(self, block: Block) -> int:
        """Searches since the block became free (``gc_count``)."""
        return self.searches - block.gc_count_base

    def take_best_fit(
        self, size_bytes: int, stream: int, settings: AllocatorSettings, *, expandable: bool = False
    ) -> Block | None:
        """Take the smallest block of the stream that is large enough (``get_free_block``).

        Args:
            size_bytes: rounded size.
            stream: whose blocks may serve.
            settings: the oversize rules.
            expandable: whether expandable segments are active for the request.
        """
        candidates = self.free.of_stream(stream)
        block = candidates.first_at_least(size_bytes)
        if block is not None and block.segment.is_expandable:
            if expandable:
                block = least_expandable(block, candidates)
            else:
                block = next_plain(block, candidates)
        if block is None or not may_serve(block.size_bytes, size_bytes, settings):
            return None
        self.remove(block)
        return block


def set_order(block: Block) -> tuple[int, int]:
    """Sort key: the place of a free block in PyTorch's set (``BlockComparatorSize``)."""
    return block.stream, block.free_key


def expandable_size(block: Block) -> int:
    """How large a block can become by mapping what follows (``get_free_block``)."""
    following = block.next
    if following is None or following.mapped:
        return block.size_bytes
    return block.size_bytes + following.size_bytes


def least_expandable(block: Block, candidates: StreamBlocks) -> Block:
    """The best fit where a block counts as large as it can become (``get_free_block``).

    So the end of a range, which can grow almost without limit, is used last.
    """
    while block.segment.is_expandable:
        following = candidates.after(block)
        if following is None or expandable_size(following) >= expandable_size(block):
            break
        block = following
    return block


def next_plain(block: Block, candidates: StreamBlocks) -> Block | None:
    """The next block of a plain segment: the option is off, so the others must not be used."""
    following: Block | None = block
    while following is not None and following.segment.is_expandable:
        following = candidates.after(following)
    return following


def may_serve(block_bytes: int, size_bytes: int, settings: AllocatorSettings) -> bool:
    """Whether the oversize rules let a block serve a request (``get_free_block``)."""
    limit = settings.max_split_size_bytes
    if size_bytes < limit:
        return block_bytes < limit
    return block_bytes < size_bytes + settings.max_non_split_rounding_bytes


def should_split(
    block: Block, size_bytes: int, settings: AllocatorSettings, *, expandable: bool = False
) -> bool:
    """Whether what is left of a block becomes a free block (``should_split``)."""
    if block.pool.never_splits:
        return False
    remaining = block.size_bytes - size_bytes
    if expandable or block.pool.is_small:
        return remaining >= MIN_BLOCK_BYTES
    return size_bytes < settings.max_split_size_bytes and remaining > SMALL_BYTES
