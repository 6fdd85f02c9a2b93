"""The allocator itself: what a program calls, and what it can ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vramscope_analysis.allocator.active_blocks import ActiveBlocks
from vramscope_analysis.allocator.address_space import AddressSpace, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.cached_memory import CachedMemory
from vramscope_analysis.allocator.events import EventCallback, PoolId
from vramscope_analysis.allocator.new_memory import NewMemory, Request
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID
from vramscope_analysis.allocator.readings import Readings
from vramscope_analysis.allocator.restoring import Restoration
from vramscope_analysis.allocator.rounding import SMALL_BYTES, round_size
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.state import AllocatorState
from vramscope_analysis.allocator.version_rules import DEFAULT_VERSION, Version, rules_of


class CachingAllocator(Readings):
    """One device's caching allocator (``DeviceCachingAllocator``). Not thread-safe.

    Args:
        capacity_bytes: what the device has for this process; ``None``: it never runs out.
        settings: as ``PYTORCH_CUDA_ALLOC_CONF`` would give them. An option that the release does
            not know yet is followed all the same: ``parse_settings`` refuses it.
        limit_bytes: the process's own cap below that (``set_per_process_memory_fraction``).
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
        version: Version = DEFAULT_VERSION,
        addresses: AddressSpace | None = None,
        on_event: EventCallback | None = None,
    ) -> None:
        state = AllocatorState(
            settings if settings is not None else AllocatorSettings(),
            rules_of(version),
            capacity_bytes=capacity_bytes,
            limit_bytes=limit_bytes,
            addresses=addresses if addresses is not None else FirstFitAddresses(),
            on_event=on_event,
        )
        super().__init__(state, CachedMemory(state))
        self.version = version
        self._pools = self._cached.private
        self._active = ActiveBlocks(self._state, self._pools)
        self._new_memory = NewMemory(self._state, self._cached, self._active)
        fraction = self.settings.per_process_memory_fraction
        has_fraction = fraction < 1.0 and state.rules.fraction_is_option
        if has_fraction and limit_bytes is None and capacity_bytes is not None:
            self.set_memory_fraction(fraction)

    # ------------------------------------------------------------------------- what tensors do

    def malloc(self, size_bytes: int, stream: int = 0, pool_id: PoolId | None = None) -> Block:
        """Hand out a block (``DeviceCachingAllocator::malloc``).

        Args:
            size_bytes: at least 1: PyTorch asks for nothing when a tensor is empty.
            stream: stream that the tensor belongs to.
            pool_id: the pool to take it from; ``None``: what a begun scope says, else the
                default pool. A pool that nobody made is made.

        Raises:
            OutOfMemoryError: nothing fits, also after the whole cache was released.
            ValueError: a size below 1.
        """
        if size_bytes < 1:
            raise ValueError(f"expected a size of at least 1 byte, got {size_bytes}")
        state = self._state
        cached = self._cached
        if self._active.deferred and not self._pools.holds_back:
            self._active.settle_deferred()
        settings = state.settings
        rounded = round_size(size_bytes, settings)
        is_small = rounded <= SMALL_BYTES
        if pool_id is None and not self._pools.scopes:
            pool = cached.small if is_small else cached.large
        else:
            pool = cached.pool_for(pool_id, stream, is_small=is_small)
        expandable = settings.expandable_segments
        if expandable and pool.owner is not None and pool.owner.has_allocator:
            expandable = not state.rules.pages_by_request
        if state.counts_searches:
            pool.searches += 1
        block = pool.take_best_fit(rounded, stream, settings, expandable=expandable)
        if block is None:
            request = Request(pool, size_bytes, rounded, stream, expandable)
            block = self._new_memory.block_for(request)
            expandable = request.expandable
        return self._active.hand_out(block, rounded, size_bytes, expandable=expandable)

    def record_stream(self, block: Block, stream: int) -> None:
        """Another stream uses the block: its free waits for :meth:`complete_free`."""
        self._active.record_stream(block, stream)

    def free(self, block: Block) -> None:
        """Give a block back (``DeviceCachingAllocator::free``).

        Raises:
            ValueError: the block is not handed out.
        """
        self._active.free(block)

    def complete_free(self, block: Block) -> None:
        """The other streams are done with a freed block (``process_events``).

        When that is, only the device knows: the caller says it. A release of the whole cache
        waits for all of them by itself, in the order in which they were freed.

        Raises:
            ValueError: the block waits for nothing.
        """
        self._active.complete(block)

    # -------------------------------------------------------------------------- private pools

    def create_pool(
        self,
        pool_id: PoolId,
        *,
        use_on_oom: bool = False,
        no_split: bool = False,
        has_allocator: bool = False,
    ) -> None:
        """Make a private pool, or use it once more (``createOrIncrefPool``).

        Args:
            pool_id: its id, not (0, 0).
            use_on_oom: its free blocks help when the default pools get no memory (2.8+).
            no_split: only whole segments are handed out (2.10+).
            has_allocator: its memory comes from an allocator of the user's.

        Raises:
            ValueError: the id of the default pool, or of one that was released and still
                holds memory.
        """
        self._pools.create(pool_id, has_allocator=has_allocator)
        if use_on_oom:
            self._pools.used_on_oom.insert(pool_id, None)
        if no_split:
            self._pools.never_split(pool_id)

    def release_pool(self, pool_id: PoolId) -> None:
        """Use a private pool once less; unused ones may give their memory back (``releasePool``).

        Raises:
            ValueError: nobody uses that pool.
        """
        self._pools.release(pool_id)

    def begin_allocate_to_pool(
        self, pool_id: PoolId, *, is_capture: bool = False, streams: Iterable[int] | None = None
    ) -> None:
        """Take memory from a private pool from now on (``beginAllocateToPool``).

        Args:
            pool_id: the pool, which is used once more.
            is_capture: whether a CUDA graph is captured (from 2.13 on that makes a difference).
            streams: streams whose requests are meant; ``None``: all.

        Raises:
            ValueError: that is so already.
        """
        self._pools.begin(pool_id, is_capture=is_capture, streams=streams)

    def end_allocate_to_pool(self, pool_id: PoolId) -> None:
        """Take memory from that pool no longer (``endAllocateToPool``). It stays in use.

        Raises:
            ValueError: none was taken from it.
        """
        self._pools.end(pool_id)

    # -------------------------------------------------------------------------- what users do

    def empty_cache(self, pool_id: PoolId = DEFAULT_POOL_ID) -> None:
        """Give every unused segment back to the device (``emptyCache``).

        Args:
            pool_id: a private pool that is no longer used; (0, 0): all that may be released.

        Raises:
            RuntimeError: during a capture, in releases that refuse that (up to 2.7).
        """
        self._cached.release(self._active, pool_id)

    def set_settings(self, settings: AllocatorSettings) -> None:
        """Change the options (``_set_allocator_settings``). They hold from the next call on."""
        self._state.change_settings(settings)

    def set_limit(self, limit_bytes: int | None) -> None:
        """Change the process's own cap (``allowed_memory_maximum``).

        Nothing is released until the next request that finds no free block.
        """
        self._state.change_limit(limit_bytes)

    def set_memory_fraction(self, fraction: float) -> None:
        """Set the cap as a part of the device (``setMemoryFraction``).

        Raises:
            ValueError: not from 0 to 1, or the device has no end.
        """
        if not 0.0 <= fraction <= 1.0:
            raise ValueError(f"expected a fraction from 0 to 1, got {fraction}")
        if self.capacity_bytes is None:
            raise ValueError("expected a device with a capacity, got one without an end")
        lifted = fraction >= 1.0 and self._state.rules.full_fraction_lifts_limit
        self.set_limit(None if lifted else int(fraction * self.capacity_bytes))

    def set_capacity(self, capacity_bytes: int | None) -> None:
        """Change what the device has for this process; ``None``: it never runs out."""
        self._state.capacity_bytes = capacity_bytes

    def reset_peaks(self) -> None:
        """Set every peak to its current value (``resetPeakStats``)."""
        self.counters.reset_peaks()

    def reset_accumulated(self) -> None:
        """Begin every total anew (``resetAccumulatedStats``)."""
        self.counters.reset_accumulated()

    def restore(self, segments: Iterable[Mapping[str, Any]]) -> dict[int, Block]:
        """Begin with the state of a snapshot: see :class:`Restoration`.

        Args:
            segments: in PyTorch's structure, in any order.

        Returns:
            The blocks in use, allocated or waiting, by address.

        Raises:
            ValueError: the model is not empty, or the segments contradict each other.
        """
        return Restoration(self._state, self._cached, self._active).fill(segments)
