"""Expandable segments: ranges of addresses into which the device's memory is mapped in pages."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.rounding import SMALL_SEGMENT_BYTES, round_up
from vramscope_analysis.allocator.segment import ExpandableSegment
from vramscope_analysis.allocator.state import AllocatorState

UNBOUNDED_DEVICE_BYTES: Final = 1 << 42
"""Size that ranges are made for when the device has no end."""


class ExpandableMemory:
    """The expandable segments of one device (``expandable_segments_``), by address."""

    def __init__(self, state: AllocatorState) -> None:
        self.segments: dict[int, ExpandableSegment] = {}
        self._state = state

    def take(self, pool: BlockPool, size_bytes: int, stream: int) -> Block | None:
        """Map memory for a block of at least that size (``try_allocate_expandable_block``).

        Returns:
            The block, not free any more. ``None`` if the device ran out: what was mapped before
            that stays, as free memory.
        """
        block = self._find(pool, size_bytes, stream)
        # Now: unmapped, or unmapped and free ones in turn, with enough room together.
        if not block.mapped and not self._map(block, min(block.size_bytes, size_bytes)):
            return None
        while block.size_bytes < size_bytes:
            unmapped = block.next
            if unmapped is None:
                return None  # the request is larger than a whole range
            missing_bytes = size_bytes - block.size_bytes
            if not self._map(unmapped, min(missing_bytes, unmapped.size_bytes)):
                return None
            block = unmapped  # it has absorbed the block before it
        pool.remove(block)
        if pool.owner is not None:
            pool.owner.malloc_count += 1
        return block

    def unmap(self, block: Block) -> None:
        """Give the pages that lie whole in a free block back (``unmap_block``)."""
        segment = block.segment
        assert isinstance(segment, ExpandableSegment)
        address, size_bytes = segment.pages_within(block)
        if not size_bytes:
            return
        state = self._state
        pool = block.pool
        pool.remove(block)
        before_bytes = address - block.address
        after_bytes = block.size_bytes - before_bytes - size_bytes
        edges: list[Block] = []
        if before_bytes:
            edges.append(segment.split(block, before_bytes))
        if after_bytes:
            edges.append(segment.cut_tail(block, after_bytes))
        for edge in edges:
            pool.insert(edge)
        block.mapped = False
        pool.absorb(block, block.prev)
        pool.absorb(block, block.next)
        pool.unmapped.insert(block)
        for stat in state.reserved_stats(pool):
            stat.decrease(size_bytes)
        if pool.owner is not None:
            # Counted by request above and by unmapping here, as PyTorch does.
            pool.owner.malloc_count = max(0, pool.owner.malloc_count - 1)
        state.counters.num_device_free += 1
        state.emit("segment_unmap", address, size_bytes, block.stream, pool.pool_id)
        if not block.is_split:
            self._release(segment)

    def page_bytes_of(self, pool: BlockPool) -> int:
        """Size of the pages of a pool's new ranges (``find_expandable_block``)."""
        return SMALL_SEGMENT_BYTES if pool.is_small else self._state.settings.large_segment_bytes

    def range_bytes(self, page_bytes: int) -> int:
        """Size of a new range: 1 1/8 of the device's memory (``ExpandableSegment``)."""
        device_bytes = self._state.capacity_bytes
        if device_bytes is None:
            device_bytes = UNBOUNDED_DEVICE_BYTES
        return round_up(device_bytes + device_bytes // 8, page_bytes)

    def _find(self, pool: BlockPool, size_bytes: int, stream: int) -> Block:
        """Lowest place with enough unmapped and free room (``find_expandable_block``)."""
        for unmapped in pool.unmapped.of_stream(stream):
            before = unmapped.prev
            block = before if before is not None and before.is_available else unmapped
            if _has_room(block, size_bytes):
                return block
        return self._new_segment(pool, stream).first

    def _new_segment(self, pool: BlockPool, stream: int) -> ExpandableSegment:
        """Reserve the addresses of a new range (``ExpandableSegment``)."""
        state = self._state
        page_bytes = self.page_bytes_of(pool)
        range_bytes = self.range_bytes(page_bytes)
        address = state.addresses.reserve_range(range_bytes)
        segment = ExpandableSegment(
            address, range_bytes, stream, pool, next(state.memory_numbers), page_bytes=page_bytes
        )
        self.segments[address] = segment
        pool.unmapped.insert(segment.first)
        return segment

    def _map(self, block: Block, size_bytes: int) -> bool:
        """Map the front of an unmapped block and make it free (``map_block``).

        Returns:
            Whether the device had the pages. All or none of one call are mapped.
        """
        segment = block.segment
        assert isinstance(segment, ExpandableSegment)
        state = self._state
        mapped_bytes = segment.pages_over(size_bytes)
        if not state.on_device(mapped_bytes):
            return False
        pool = block.pool
        address = block.address
        pool.unmapped.remove(block)
        block.mapped = True
        if mapped_bytes < block.size_bytes:
            remaining = segment.cut_tail(block, block.size_bytes - mapped_bytes)
            remaining.mapped = False
            pool.unmapped.insert(remaining)
        pool.absorb(block, block.prev)
        pool.absorb(block, block.next)
        pool.insert(block)
        for stat in state.reserved_stats(pool):
            stat.increase(mapped_bytes)
        state.counters.num_device_alloc += 1
        state.emit("segment_map", address, mapped_bytes, block.stream, pool.pool_id)
        return True

    def _release(self, segment: ExpandableSegment) -> None:
        """Give up a range without any page (``release_expandable_segment``)."""
        segment.pool.unmapped.remove(segment.first)
        del self.segments[segment.address]
        self._state.addresses.release_range(segment.address, segment.size_bytes)


def _has_room(block: Block, size_bytes: int) -> bool:
    """Whether what is available from a block on adds up (``find_expandable_block``)."""
    found_bytes = 0
    following: Block | None = block
    while found_bytes < size_bytes and following is not None and following.is_available:
        found_bytes += following.size_bytes
        following = following.next
    return found_bytes >= size_bytes
