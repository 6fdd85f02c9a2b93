"""One segment: memory taken from the device in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vramscope_analysis.allocator.block import Block

if TYPE_CHECKING:
    from vramscope_analysis.allocator.pool import BlockPool


class Segment:
    """A range of device memory that belongs to one stream and one pool, whole in blocks."""

    __slots__ = ("address", "first", "pool", "size_bytes", "stream")

    def __init__(self, address: int, size_bytes: int, stream: int, pool: BlockPool) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.stream = stream
        self.pool = pool
        self.first = Block(address, size_bytes, stream, pool, self)

    def blocks(self) -> Iterator[Block]:
        """Blocks by address."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next

    def split(self, block: Block, size_bytes: int) -> Block:
        """Cut the front of a block off as a block of its own; the block keeps the rest.

        Follows ``alloc_found_block``: the lower address is what gets handed out.
        """
        front = Block(block.address, size_bytes, block.stream, block.pool, self)
        front.prev = block.prev
        front.next = block
        if front.prev is None:
            self.first = front
        else:
            front.prev.next = front
        block.prev = front
        block.address += size_bytes
        block.size_bytes -= size_bytes
        return front

    def absorb(self, block: Block, neighbour: Block) -> None:
        """Join a free neighbour into a block (``try_merge_blocks``)."""
        if neighbour is block.prev:
            block.address = neighbour.address
            block.prev = neighbour.prev
            if block.prev is None:
                self.first = block
            else:
                block.prev.next = block
        else:
            block.next = neighbour.next
            if block.next is not None:
                block.next.prev = block
        block.size_bytes += neighbour.size_bytes
        # The absorbed block refers to its former neighbours: cut it off, no cycles are left.
        neighbour.prev = neighbour.next = None
