"""The allocator itself: what ``malloc``, ``free`` and ``empty_cache`` do, and in which order."""

from __future__ import annotations

from typing import Any, Final

from vramscope_analysis.allocator.address_space import AddressSpace, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.errors import OutOfMemoryError
from vramscope_analysis.allocator.events import EventCallback
from vramscope_analysis.allocator.pool import BlockPool, should_split
from vramscope_analysis.allocator.rounding import is_small_size, round_size, segment_size
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.snapshot import segment_entries

MODELLED_VERSION: Final = (2, 11)
"""Newest torch whose rules the model follows (blocks of equal size are taken by address)."""


class CachingAllocator:
    """One device's caching allocator (``DeviceCachingAllocator``). Not thread-safe.

    Args:
        capacity_bytes: what the device has for this process.
        limit_bytes: the process's own cap below that (``set_per_process_memory_fraction``).
        settings: as ``PYTORCH_CUDA_ALLOC_CONF`` would give them.
        version: torch release to follow, as (major, minor).
        addresses: where segments are placed; first fit by default.
        on_event: called for every entry that PyTorch would write to its trace.

    Raises:
        ValueError: a version whose rules are not modelled.
    """

    def __init__(
        self,
        capacity_bytes: int,
        settings: AllocatorSettings | None = None,
        *,
        limit_bytes: int | None = None,
        version: tuple[int, int] = MODELLED_VERSION,
        addresses: AddressSpace | None = None,
        on_event: EventCallback | None = None,
    ) -> None:
        if not (2, 4) <= version <= MODELLED_VERSION:
            raise ValueError(
                f"expected a torch version from 2.4 to 2.11, got {version[0]}.{version[1]}"
            )
        self.settings = settings if settings is not None else AllocatorSettings()
        self.counters = Counters(self.settings.max_split_size_bytes)
        self._device = DeviceMemory(
            capacity_bytes,
            limit_bytes,
            self.settings,
            self.counters,
            addresses if addresses is not None else FirstFitAddresses(),
            on_event,
        )
        self._on_event = on_event
        self._small = BlockPool(is_small=True, counters=self.counters)
        self._large = BlockPool(is_small=False, counters=self.counters)
        self._pending: dict[Block, None] = {}  # in the order in which they were freed

    # ------------------------------------------------------------------------- what tensors do

    def malloc(self, size_bytes: int, stream: int = 0) -> Block:
        """Hand out a block (``DeviceCachingAllocator::malloc``).

        Raises:
            OutOfMemoryError: nothing fits, also after the whole cache was released.
        """
        rounded = round_size(size_bytes, self.settings)
        pool = self._small if is_small_size(rounded) else self._large
        block = pool.take_best_fit(rounded, stream, self.settings)
        if block is None:
            block = self._find_new_block(pool, size_bytes, rounded, stream)
        return self._hand_out(block, rounded, size_bytes)

    def record_stream(self, block: Block, stream: int) -> None:
        """Another stream uses the block: its free waits for :meth:`complete_free`."""
        if stream != block.stream:
            block.stream_uses |= {stream}

    def free(self, block: Block) -> None:
        """Give a block back (``DeviceCachingAllocator::free``).

        Raises:
            ValueError: the block is not handed out.
        """
        if not block.allocated:
            raise ValueError(f"expected an allocated block, got {block!r}")
        block.allocated = False
        size_bytes = block.size_bytes
        pool = block.pool
        pool.stats.free_requested(size_bytes)
        pool.stats_all.free_requested(size_bytes)
        if size_bytes >= self.settings.max_split_size_bytes:
            self.counters.oversize_allocations.decrease(1)
        if self._on_event is not None:
            self._on_event("free_requested", block.address, block.requested_bytes, block.stream)
        if block.stream_uses:
            block.pending = True
            self._pending[block] = None
        else:
            self._free_block(block)

    def complete_free(self, block: Block) -> None:
        """The other streams are done with a freed block (``process_events``).

        When that is, only the device knows: the caller says it.
        """
        del self._pending[block]
        block.pending = False
        block.stream_uses = frozenset()
        self._free_block(block)

    # -------------------------------------------------------------------------- what users do

    def empty_cache(self) -> None:
        """Give every unused segment back to the device (``emptyCache``)."""
        self._release_cached_blocks()

    def reset_peaks(self) -> None:
        """Set every peak to its current value (``resetPeakStats``)."""
        self.counters.reset_peaks()

    def memory_stats(self) -> dict[str, Any]:
        """Counters as ``torch._C._cuda_memoryStats`` returns them."""
        return self.counters.as_dict()

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks as ``torch.cuda.memory_snapshot()`` returns them."""
        return segment_entries(self._device.segments.values())

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device."""
        return self._device.reserved_bytes

    @property
    def allowed_bytes(self) -> int:
        """Most that may be held from the device."""
        return self._device.allowed_bytes

    # ------------------------------------------------------------------------------- the rules

    def _find_new_block(self, pool: BlockPool, size_bytes: int, rounded: int, stream: int) -> Block:
        """What ``malloc`` tries after a miss, in its order."""
        segment_bytes = segment_size(rounded, self.settings)
        limit_bytes = self._device.limit_bytes
        # Without a cap there is no fraction of it: PyTorch collects nothing then.
        if self.settings.garbage_collection_threshold and limit_bytes is not None:
            self._collect_garbage(limit_bytes)
        block = self._device.take(pool, segment_bytes, stream)
        if block is None and self._release_available_cached_blocks(pool, rounded, stream):
            block = self._device.take(pool, segment_bytes, stream)
        if block is None:
            self._release_cached_blocks()
            self.counters.num_alloc_retries += 1
            block = self._device.take(pool, segment_bytes, stream)
        if block is None:
            raise self._out_of_memory(pool, size_bytes, rounded, segment_bytes, stream)
        return block

    def _out_of_memory(
        self, pool: BlockPool, size_bytes: int, rounded: int, segment_bytes: int, stream: int
    ) -> OutOfMemoryError:
        self.counters.num_ooms += 1
        if self._on_event is not None:
            device_free = self._device.capacity_bytes - self.reserved_bytes
            self._on_event("oom", device_free, rounded, stream)
        return OutOfMemoryError(
            requested_bytes=size_bytes,
            segment_bytes=segment_bytes,
            capacity_bytes=self._device.capacity_bytes,
            allowed_bytes=self.allowed_bytes,
            reserved_bytes=self.reserved_bytes,
            allocated_bytes=self.counters.all.allocated_bytes.current,
            largest_free_bytes=pool.free.largest(stream),
            stream=stream,
        )

    def _hand_out(self, block: Block, rounded: int, size_bytes: int) -> Block:
        """Split a block if it pays, and count what is handed out (``alloc_found_block``)."""
        pool = block.pool
        was_split = block.is_split
        if should_split(block, rounded, self.settings):
            remaining = block
            block = block.segment.split(block, rounded)
            pool.insert(remaining)
            if was_split:
                self._inactive_split_changed(pool, 0, -rounded)
            else:
                self._inactive_split_changed(pool, 1, remaining.size_bytes)
        elif was_split:
            self._inactive_split_changed(pool, -1, -block.size_bytes)
        block.allocated = True
        block.requested_bytes = size_bytes
        pool.stats.block_allocated(block.size_bytes, size_bytes)
        pool.stats_all.block_allocated(block.size_bytes, size_bytes)
        if block.size_bytes >= self.settings.max_split_size_bytes:
            self.counters.oversize_allocations.increase(1)
        if self._on_event is not None:
            self._on_event("alloc", block.address, size_bytes, block.stream)
        return block

    def _free_block(self, block: Block) -> None:
        """Join a block with its free neighbours and make it available (``free_block``)."""
        pool = block.pool
        size_bytes = block.size_bytes
        requested_bytes = block.requested_bytes
        if self._on_event is not None:
            self._on_event("free_completed", block.address, requested_bytes, block.stream)
        blocks_change = bytes_change = 0
        for neighbour in (block.prev, block.next):
            if neighbour is not None and not neighbour.allocated and not neighbour.pending:
                pool.free.remove(neighbour)
                block.segment.absorb(block, neighbour)
                blocks_change -= 1
                bytes_change -= neighbour.size_bytes
        pool.insert(block)
        if block.is_split:
            blocks_change += 1
            bytes_change += block.size_bytes
        if blocks_change or bytes_change:
            self._inactive_split_changed(pool, blocks_change, bytes_change)
        pool.stats.free_completed(size_bytes, requested_bytes)
        pool.stats_all.free_completed(size_bytes, requested_bytes)

    def _inactive_split_changed(self, pool: BlockPool, blocks: int, size_bytes: int) -> None:
        pool.stats.inactive_split_changed(blocks, size_bytes)
        pool.stats_all.inactive_split_changed(blocks, size_bytes)

    # ------------------------------------------------------------ giving back to the device

    def _release_cached_blocks(self) -> None:
        """Wait for pending frees, then release all that is free (``release_cached_blocks``)."""
        self.counters.num_sync_all_streams += 1
        for block in list(self._pending):
            self.complete_free(block)
        for pool in (self._large, self._small):
            for block in pool.free:
                if not block.is_split:
                    self._device.release(block)

    def _release_available_cached_blocks(self, pool: BlockPool, rounded: int, stream: int) -> bool:
        """Release just enough oversize blocks (``release_available_cached_blocks``)."""
        limit = self.settings.max_split_size_bytes
        if limit == AllocatorSettings.max_split_size_bytes:
            return False
        wanted = max(rounded, limit)
        free = pool.free.of_stream(stream)
        position = free.at_least(wanted)
        if position < len(free.blocks):
            self._device.release(free.blocks[position])
            return True
        released = 0
        while free.blocks and released < wanted and free.blocks[-1].size_bytes >= limit:
            released += free.blocks[-1].size_bytes
            self._device.release(free.blocks[-1])
        return released >= wanted

    def _collect_garbage(self, limit_bytes: int) -> None:
        """Release the older free blocks down to the threshold (``garbage_collect_cached_blocks``).

        Only whole segments of the large pool count, without waiting for any stream.
        """
        target = int(self.settings.garbage_collection_threshold * limit_bytes)
        excess = self.reserved_bytes - target
        ages = {b: self._large.age(b) for b in self._large.free if not b.is_split}
        freed = True
        while excess > 0 and freed and ages:
            threshold = sum(ages.values()) / len(ages)
            freed = False
            for block in [block for block, age in ages.items() if age >= threshold]:
                freed = True
                excess -= block.size_bytes
                del ages[block]
                self._device.release(block)
