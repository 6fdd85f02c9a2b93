"""The unmapped parts of the expandable segments of one pool, by address."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter

from vramscope_analysis.allocator.block import Block

_address = attrgetter("address")


class UnmappedBlocks:
    """Unmapped blocks by stream, then address (``BlockPool::unmapped``).

    Several may have one address: how far a range goes is not known where a recording placed it.
    """

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        self._streams: dict[int, list[Block]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._streams.values()))

    def of_stream(self, stream: int) -> Iterator[Block]:
        """Blocks of a stream, from the lowest address up. Not to be changed meanwhile."""
        return iter(self._streams.get(stream, ()))

    def insert(self, block: Block) -> None:
        """Add an unmapped block."""
        insort(self._streams.setdefault(block.stream, []), block, key=_address)

    def remove(self, block: Block) -> None:
        """Take a block out. Must come before its address changes."""
        blocks = self._streams[block.stream]
        position = bisect_left(blocks, block.address, key=_address)
        while blocks[position] is not block:
            position += 1
        del blocks[position]
