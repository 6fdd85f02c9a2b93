"""The free blocks of one pool, in the order in which the allocator searches them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from vramscope_analysis.allocator.block import Block

SIZE_SHIFT: Final = 64
"""Size above, address below, in one integer: one comparison a step of the search."""


def free_key(block: Block) -> int:
    """Sort key inside one stream: size, then address (``BlockComparatorSize``, up to 2.11)."""
    return block.size_bytes << SIZE_SHIFT | block.address


class StreamBlocks:
    """Free blocks of one stream, sorted by :func:`free_key`."""

    __slots__ = ("blocks", "keys")

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.blocks: list[Block] = []

    def at_least(self, size_bytes: int) -> int:
        """Position of the first block of this size or more (``lower_bound``)."""
        return bisect_left(self.keys, size_bytes << SIZE_SHIFT)


class FreeBlocks:
    """Free blocks by stream. Streams never share them: the key of PyTorch's set starts with it."""

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        self._streams: dict[int, StreamBlocks] = {}

    def __iter__(self) -> Iterator[Block]:
        """Blocks in set order: stream, size, address. A copy: the set may change meanwhile."""
        for stream in sorted(self._streams):
            yield from list(self._streams[stream].blocks)

    def __len__(self) -> int:
        return sum(len(blocks.keys) for blocks in self._streams.values())

    def of_stream(self, stream: int) -> StreamBlocks:
        """Blocks of one stream; the list is live."""
        blocks = self._streams.get(stream)
        if blocks is None:
            blocks = self._streams[stream] = StreamBlocks()
        return blocks

    def insert(self, block: Block) -> None:
        """Add a free block."""
        stream = self.of_stream(block.stream)
        key = block.free_key = free_key(block)
        position = bisect_left(stream.keys, key)
        stream.keys.insert(position, key)
        stream.blocks.insert(position, block)

    def remove(self, block: Block) -> None:
        """Take a block out. Must come before its size or address changes."""
        stream = self._streams[block.stream]
        position = bisect_left(stream.keys, block.free_key)
        del stream.keys[position]
        del stream.blocks[position]

    def largest(self, stream: int) -> int:
        """Size of the largest free block of a stream, 0 if there is none."""
        blocks = self.of_stream(stream).blocks
        return blocks[-1].size_bytes if blocks else 0
