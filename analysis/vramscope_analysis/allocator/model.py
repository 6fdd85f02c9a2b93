"""The allocator itself: what ``malloc``, ``free`` and ``empty_cache`` do, and in which order."""

from __future__ import annotations

from typing import Any, Final

from vramscope_analysis.allocator.address_space import AddressSpace, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.cache_release import (
    collect_garbage,
    release_blocks,
    release_oversize_blocks,
)
from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.errors import OutOfMemoryError
from vramscope_analysis.allocator.events import EventCallback
from vramscope_analysis.allocator.expandable_memory import ExpandableMemory
from vramscope_analysis.allocator.pool import BlockPool, should_split
from vramscope_analysis.allocator.rounding import is_small_size, round_size, segment_size
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.snapshot import segment_entries
from vramscope_analysis.allocator.state import AllocatorState

MODELLED_VERSION: Final = (2, 11)
"""Newest torch whose rules the model follows (blocks of equal size are taken by address)."""


class CachingAllocator:
    """One device's caching allocator (``DeviceCachingAllocator``). Not thread-safe.

    Args:
        capacity_bytes: what the device has for this process; ``None``: it never runs out.
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
        capacity_bytes: int | None,
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
        self._state = AllocatorState(
            self.settings,
            capacity_bytes=capacity_bytes,
            limit_bytes=limit_bytes,
            addresses=addresses if addresses is not None else FirstFitAddresses(),
            on_event=on_event,
        )
        self.counters: Counters = self._state.counters
        self._device = DeviceMemory(self._state)
        self._expandable = ExpandableMemory(self._state)
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
        settings = self.settings
        rounded = round_size(size_bytes, settings)
        pool = self._small if is_small_size(rounded) else self._large
        if self._state.counts_searches:
            pool.searches += 1
        block = pool.take_best_fit(
            rounded, stream, settings, expandable=settings.expandable_segments
        )
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
            self._on_event(
                "free_requested", block.address, block.requested_bytes, block.stream, pool.pool_id
            )
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
        return segment_entries(
            [*self._device.segments.values(), *self._expandable.segments.values()]
        )

    @property
    def on_event(self) -> EventCallback | None:
        """Called for every entry that PyTorch would write to its trace."""
        return self._on_event

    @on_event.setter
    def on_event(self, callback: EventCallback | None) -> None:
        self._on_event = self._state.on_event = callback

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device."""
        return self._state.reserved_bytes

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks that are handed out."""
        return self.counters.all.allocated_bytes.current

    @property
    def capacity_bytes(self) -> int | None:
        """What the device has for this process; ``None``: it never runs out."""
        return self._state.capacity_bytes

    @property
    def limit_bytes(self) -> int | None:
        """The process's own cap (``allowed_memory_maximum``); ``None``: there is none."""
        return self._state.limit_bytes

    @property
    def allowed_bytes(self) -> int | None:
        """Most that may be held from the device: limit or capacity. ``None``: no end."""
        return self._state.allowed_bytes

    # ------------------------------------------------------------------------------- the rules

    def _find_new_block(self, pool: BlockPool, size_bytes: int, rounded: int, stream: int) -> Block:
        """What ``malloc`` tries after a miss, in its order."""
        if self._state.counts_searches:
            self._collect_garbage()
        block = self._take_new(pool, rounded, stream)
        if block is None and release_oversize_blocks(
            pool, rounded, stream, self.settings, self._device
        ):
            block = self._take_new(pool, rounded, stream)
        if block is None:
            self._release_cached_blocks()
            self.counters.num_alloc_retries += 1
            block = self._take_new(pool, rounded, stream)
        if block is None:
            raise self._out_of_memory(pool, size_bytes, rounded, stream)
        return block

    def _take_new(self, pool: BlockPool, rounded: int, stream: int) -> Block | None:
        """Take memory from the device, if the limit allows it (``alloc_block``)."""
        segment_bytes = segment_size(rounded, self.settings)
        if not self._state.within_limit(segment_bytes):
            return None
        if self.settings.expandable_segments:
            return self._expandable.take(pool, rounded, stream)
        return self._device.take(pool, segment_bytes, stream)

    def _out_of_memory(
        self, pool: BlockPool, size_bytes: int, rounded: int, stream: int
    ) -> OutOfMemoryError:
        self.counters.num_ooms += 1
        # Without an end of the device the limit has bound (or a request larger than any device).
        allowed_bytes = self.reserved_bytes if self.allowed_bytes is None else self.allowed_bytes
        capacity_bytes = allowed_bytes if self.capacity_bytes is None else self.capacity_bytes
        error = OutOfMemoryError(
            requested_bytes=size_bytes,
            segment_bytes=segment_size(rounded, self.settings),
            capacity_bytes=capacity_bytes,
            allowed_bytes=allowed_bytes,
            reserved_bytes=self.reserved_bytes,
            allocated_bytes=self.allocated_bytes,
            largest_free_bytes=pool.free.largest(stream),
            stream=stream,
        )
        self._state.emit("oom", error.free_bytes, rounded, stream, pool.pool_id)
        return error

    def _hand_out(self, block: Block, rounded: int, size_bytes: int) -> Block:
        """Split a block if it pays, and count what is handed out (``alloc_found_block``)."""
        pool = block.pool
        settings = self.settings
        is_expandable = block.segment.is_expandable
        was_split = block.prev is not None or block.next is not None
        if should_split(block, rounded, settings, expandable=settings.expandable_segments):
            remaining = block
            block = block.segment.split(block, rounded)
            pool.insert(remaining)
            if is_expandable:
                pass  # its pages can always go back: no piece counts as a split one
            elif was_split:
                self._inactive_split_changed(pool, 0, -rounded)
            else:
                self._inactive_split_changed(pool, 1, remaining.size_bytes)
        elif was_split and not is_expandable:
            self._inactive_split_changed(pool, -1, -block.size_bytes)
        block.allocated = True
        block.requested_bytes = size_bytes
        pool.stats.block_allocated(block.size_bytes, size_bytes)
        pool.stats_all.block_allocated(block.size_bytes, size_bytes)
        if block.size_bytes >= settings.max_split_size_bytes:
            self.counters.oversize_allocations.increase(1)
        if self._on_event is not None:
            self._on_event("alloc", block.address, size_bytes, block.stream, pool.pool_id)
        return block

    def _free_block(self, block: Block) -> None:
        """Join a block with its free neighbours and make it available (``free_block``)."""
        pool = block.pool
        size_bytes = block.size_bytes
        requested_bytes = block.requested_bytes
        if self._on_event is not None:
            self._on_event(
                "free_completed", block.address, requested_bytes, block.stream, pool.pool_id
            )
        blocks_change = bytes_change = 0
        for neighbour in (block.prev, block.next):
            absorbed_bytes = pool.absorb(block, neighbour)
            if absorbed_bytes:
                blocks_change -= 1
                bytes_change -= absorbed_bytes
        pool.insert(block)
        if block.prev is not None or block.next is not None:
            blocks_change += 1
            bytes_change += block.size_bytes
        if (blocks_change or bytes_change) and not block.segment.is_expandable:
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
            release_blocks(pool, self._device, self._expandable)

    def _collect_garbage(self) -> None:
        """Release old blocks above the threshold (``garbage_collect_cached_blocks``)."""
        threshold = self.settings.garbage_collection_threshold
        excess_bytes = self.reserved_bytes - int(threshold * (self.limit_bytes or 0))
        if excess_bytes > 0:
            collect_garbage(self._large, excess_bytes, self._device)
