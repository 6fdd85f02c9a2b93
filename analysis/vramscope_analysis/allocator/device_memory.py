"""What the allocator takes from the device in whole segments."""

from __future__ import annotations

from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import Segment
from vramscope_analysis.allocator.state import AllocatorState


class DeviceMemory:
    """Plain segments held from one device, by address."""

    def __init__(self, state: AllocatorState) -> None:
        self.segments: dict[int, Segment] = {}
        self._state = state

    def take(self, pool: BlockPool, size_bytes: int, stream: int) -> Block | None:
        """Take a segment, if the device has it (``alloc_block``). Its one block is not free."""
        state = self._state
        if not state.on_device(size_bytes):
            return None
        address = state.addresses.reserve(size_bytes)
        number = next(state.memory_numbers)
        segment = self.segments[address] = Segment(address, size_bytes, stream, pool, number)
        if pool.owner is not None:
            pool.owner.malloc_count += 1
        pool.stats.segment.increase(1)
        pool.stats_all.segment.increase(1)
        for stat in state.reserved_stats(pool):
            stat.increase(size_bytes)
        if size_bytes >= state.settings.max_split_size_bytes:
            state.counters.oversize_segments.increase(1)
        state.counters.num_device_alloc += 1
        state.emit("segment_alloc", address, size_bytes, stream, pool.pool_id)
        return segment.first

    def release(self, block: Block) -> None:
        """Give the segment of a free, unsplit block back (``release_block``)."""
        state = self._state
        pool = block.pool
        size_bytes = block.size_bytes
        state.emit("segment_free", block.address, size_bytes, block.stream, pool.pool_id)
        pool.remove(block)
        del self.segments[block.address]
        state.addresses.release(block.address, size_bytes)
        if pool.owner is not None:
            pool.owner.malloc_count -= 1
        pool.stats.segment.decrease(1)
        pool.stats_all.segment.decrease(1)
        for stat in state.reserved_stats(pool):
            stat.decrease(size_bytes)
        if size_bytes >= state.settings.max_split_size_bytes:
            state.counters.oversize_segments.decrease(1)
        state.counters.num_device_free += 1
