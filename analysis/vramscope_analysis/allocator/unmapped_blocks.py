"""The unmapped parts of the expandable segments of one pool, by address."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from vramscope_analysis.allocator.block import Block


class UnmappedBlocks:
    """Unmapped blocks by stream, then address (``BlockPool::unmapped``)."""

    __slots__ = ("_addresses", "_blocks")

    def __init__(self) -> None:
        self._addresses: dict[int, list[int]] = {}
        self._blocks: dict[int, Block] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def of_stream(self, stream: int) -> Iterator[Block]:
        """Blocks of a stream, from the lowest address up. Not to be changed meanwhile."""
        for address in self._addresses.get(stream, ()):
            yield self._blocks[address]

    def insert(self, block: Block) -> None:
        """Add an unmapped block."""
        self._blocks[block.address] = block
        insort(self._addresses.setdefault(block.stream, []), block.address)

    def remove(self, block: Block) -> None:
        """Take a block out. Must come before its address changes."""
        del self._blocks[block.address]
        addresses = self._addresses[block.stream]
        del addresses[bisect_left(addresses, block.address)]
