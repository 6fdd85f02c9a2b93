"""One segment: memory taken from the device in one call, or a range that pages are mapped into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vramscope_analysis.allocator.block import Block

if TYPE_CHECKING:
    from vramscope_analysis.allocator.pool import BlockPool


class Segment:
    """A range of addresses that belongs to one stream and one pool, whole in blocks."""

    __slots__ = (
        "address",
        "first",
        "is_expandable",
        "pool",
        "registration",
        "size_bytes",
        "stream",
    )

    def __init__(
        self, address: int, size_bytes: int, stream: int, pool: BlockPool, registration: int = 0
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.stream = stream
        self.pool = pool
        self.is_expandable = False
        self.registration = registration  # in the order in which memory came from the device
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

    def cut_tail(self, block: Block, size_bytes: int) -> Block:
        """Cut the end of a block off as a block of its own; the block keeps the front."""
        block.size_bytes -= size_bytes
        tail = Block(block.address + block.size_bytes, size_bytes, block.stream, block.pool, self)
        tail.prev = block
        tail.next = block.next
        if tail.next is not None:
            tail.next.prev = tail
        block.next = tail
        return tail

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


class ExpandableSegment(Segment):
    """A range of addresses into which memory is mapped page by page (``ExpandableSegment``)."""

    __slots__ = ("page_bytes",)

    def __init__(
        self,
        address: int,
        size_bytes: int,
        stream: int,
        pool: BlockPool,
        registration: int = 0,
        *,
        page_bytes: int,
    ) -> None:
        super().__init__(address, size_bytes, stream, pool, registration)
        self.is_expandable = True
        self.page_bytes = page_bytes
        self.first.mapped = False

    def pages_over(self, size_bytes: int) -> int:
        """Bytes of the pages that hold ``size_bytes`` from the start of a page on (``map``)."""
        return -(-size_bytes // self.page_bytes) * self.page_bytes

    def pages_within(self, block: Block) -> tuple[int, int]:
        """Address and bytes of the pages that lie whole in a block (``unmap``)."""
        start = self.pages_over(block.address - self.address)
        end = (block.address - self.address + block.size_bytes) // self.page_bytes * self.page_bytes
        return self.address + start, max(0, end - start)
