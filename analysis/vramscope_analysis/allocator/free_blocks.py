"""The free blocks of one pool, in the order in which the allocator searches them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.version_rules import TieBreak

CHUNK_KEYS: Final = 1024
"""Longest run of keys kept in one list: what an insertion may have to move."""


@dataclass(frozen=True)
class SearchOrder:
    """Order of free blocks within a stream, as one integer per block: one comparison a step.

    Args:
        size_shift: bits below the size.
        key_of: the size, shifted, with what breaks ties below it.
    """

    size_shift: int
    key_of: Callable[[Block], int]


def _key_by_address(block: Block) -> int:
    return block.size_bytes << 64 | block.address


def _key_by_block(block: Block) -> int:
    return block.size_bytes << 64 | block.registration


def _key_by_memory(block: Block) -> int:
    return block.size_bytes << 128 | block.registration << 64 | block.address


SEARCH_ORDERS: Final = {
    TieBreak.ADDRESS: SearchOrder(64, _key_by_address),
    TieBreak.OLDEST_BLOCK: SearchOrder(64, _key_by_block),
    TieBreak.OLDEST_MEMORY: SearchOrder(128, _key_by_memory),
}
"""The orders of the releases (``BlockComparatorSize``)."""


class StreamBlocks:
    """Free blocks of one stream, sorted by key.

    The keys lie in chunks, so that neither insertion nor removal moves more than one chunk.
    """

    __slots__ = ("_blocks", "_bounds", "_chunks", "_key_of", "_size_shift")

    def __init__(self, order: SearchOrder) -> None:
        self._key_of = order.key_of
        self._size_shift = order.size_shift
        self._blocks: dict[int, Block] = {}
        self._chunks: list[list[int]] = [[]]
        self._bounds: list[int] = [0]  # the smallest key that belongs into each chunk

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        """Blocks in order. Not to be changed meanwhile."""
        for chunk in self._chunks:
            for key in chunk:
                yield self._blocks[key]

    def first_at_least(self, size_bytes: int) -> Block | None:
        """First block of this size or more (``lower_bound``)."""
        key = size_bytes << self._size_shift
        chunks = self._chunks
        number = 0 if len(chunks) == 1 else bisect_right(self._bounds, key) - 1
        chunk = chunks[number]
        position = bisect_left(chunk, key)
        if position < len(chunk):
            return self._blocks[chunk[position]]
        if number + 1 < len(chunks):
            return self._blocks[chunks[number + 1][0]]
        return None

    def after(self, block: Block) -> Block | None:
        """The next block in order."""
        number = bisect_right(self._bounds, block.free_key) - 1
        chunk = self._chunks[number]
        position = bisect_right(chunk, block.free_key)
        if position < len(chunk):
            return self._blocks[chunk[position]]
        if number + 1 < len(self._chunks):
            return self._blocks[self._chunks[number + 1][0]]
        return None

    def before(self, size_bytes: int) -> Iterator[Block]:
        """Blocks below a size, from the largest down. The block last given may be removed."""
        key = size_bytes << self._size_shift
        number = bisect_right(self._bounds, key) - 1
        while number >= 0:
            chunk = self._chunks[number]
            for position in range(bisect_left(chunk, key) - 1, -1, -1):
                yield self._blocks[chunk[position]]
            number -= 1

    def last(self) -> Block | None:
        """The largest block."""
        chunk = self._chunks[-1]
        return self._blocks[chunk[-1]] if chunk else None

    def insert(self, block: Block) -> None:
        """Add a free block."""
        key = block.free_key = self._key_of(block)
        self._blocks[key] = block
        chunks = self._chunks
        number = 0 if len(chunks) == 1 else bisect_right(self._bounds, key) - 1
        chunk = chunks[number]
        insort(chunk, key)
        if len(chunk) > CHUNK_KEYS:
            half = CHUNK_KEYS // 2
            chunks.insert(number + 1, chunk[half:])
            self._bounds.insert(number + 1, chunk[half])
            del chunk[half:]

    def remove(self, block: Block) -> None:
        """Take a block out, by the key that it was inserted with."""
        key = block.free_key
        del self._blocks[key]
        chunks = self._chunks
        number = 0 if len(chunks) == 1 else bisect_right(self._bounds, key) - 1
        chunk = chunks[number]
        del chunk[bisect_left(chunk, key)]
        if not chunk and len(chunks) > 1:
            del chunks[number]
            del self._bounds[number]
            self._bounds[0] = 0


class FreeBlocks:
    """Free blocks by stream. Streams never share them: the key of PyTorch's set starts with it."""

    __slots__ = ("_order", "_streams")

    def __init__(self, order: SearchOrder = SEARCH_ORDERS[TieBreak.ADDRESS]) -> None:
        self._order = order
        self._streams: dict[int, StreamBlocks] = {}

    def __iter__(self) -> Iterator[Block]:
        """Blocks in set order: stream, size, tie-break. Not to be changed meanwhile."""
        for stream in sorted(self._streams):
            yield from self._streams[stream]

    def __len__(self) -> int:
        return sum(len(blocks) for blocks in self._streams.values())

    def of_stream(self, stream: int) -> StreamBlocks:
        """Blocks of one stream; the collection is live."""
        blocks = self._streams.get(stream)
        if blocks is None:
            blocks = self._streams[stream] = StreamBlocks(self._order)
        return blocks

    def insert(self, block: Block) -> None:
        """Add a free block."""
        self.of_stream(block.stream).insert(block)

    def remove(self, block: Block) -> None:
        """Take a block out."""
        self._streams[block.stream].remove(block)

    def largest(self, stream: int) -> int:
        """Size of the largest free block of a stream, 0 if there is none."""
        last = self.of_stream(stream).last()
        return 0 if last is None else last.size_bytes
