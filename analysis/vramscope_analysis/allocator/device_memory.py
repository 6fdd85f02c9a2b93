"""What the allocator holds from the device: its segments, and how many more it may take."""

from __future__ import annotations

from vramscope_analysis.allocator.address_space import AddressSpace
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.events import EventCallback
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.segment import Segment
from vramscope_analysis.allocator.settings import AllocatorSettings


class DeviceMemory:
    """Segments held from one device, by address."""

    def __init__(
        self,
        capacity_bytes: int,
        limit_bytes: int | None,
        settings: AllocatorSettings,
        counters: Counters,
        addresses: AddressSpace,
        on_event: EventCallback | None,
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self.limit_bytes = limit_bytes
        self.segments: dict[int, Segment] = {}
        self._settings = settings
        self._counters = counters
        self._addresses = addresses
        self._on_event = on_event

    @property
    def reserved_bytes(self) -> int:
        """Bytes held (``total_allocated_memory``)."""
        return self._counters.all.reserved_bytes.current

    @property
    def allowed_bytes(self) -> int:
        """Most that may be held (``allowed_memory_maximum``, or all that the device has)."""
        limit = self.limit_bytes
        return self.capacity_bytes if limit is None else min(limit, self.capacity_bytes)

    def take(self, pool: BlockPool, size_bytes: int, stream: int) -> Block | None:
        """Take a segment, if that much is left (``alloc_block``). Its one block is not free."""
        if self.reserved_bytes + size_bytes > self.allowed_bytes:
            return None
        address = self._addresses.reserve(size_bytes)
        segment = self.segments[address] = Segment(address, size_bytes, stream, pool)
        pool.stats.segment_allocated(size_bytes)
        pool.stats_all.segment_allocated(size_bytes)
        if size_bytes >= self._settings.max_split_size_bytes:
            self._counters.oversize_segments.increase(1)
        self._counters.num_device_alloc += 1
        if self._on_event is not None:
            self._on_event("segment_alloc", address, size_bytes, stream)
        return segment.first

    def release(self, block: Block) -> None:
        """Give the segment of a free, unsplit block back (``release_block``)."""
        pool = block.pool
        size_bytes = block.size_bytes
        if self._on_event is not None:
            self._on_event("segment_free", block.address, size_bytes, block.stream)
        pool.free.remove(block)
        del self.segments[block.address]
        self._addresses.release(block.address, size_bytes)
        pool.stats.segment_freed(size_bytes)
        pool.stats_all.segment_freed(size_bytes)
        if size_bytes >= self._settings.max_split_size_bytes:
            self._counters.oversize_segments.decrease(1)
        self._counters.num_device_free += 1
