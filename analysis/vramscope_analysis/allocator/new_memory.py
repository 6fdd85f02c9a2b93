"""Where a block comes from when no free one fits: the chain that ``malloc`` goes along."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_analysis.allocator.active_blocks import ActiveBlocks
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.cache_release import release_oversize_blocks
from vramscope_analysis.allocator.cached_memory import CachedMemory
from vramscope_analysis.allocator.errors import OutOfMemoryError
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.rounding import segment_size
from vramscope_analysis.allocator.state import AllocatorState
from vramscope_analysis.allocator.version_rules import PoolFallback


@dataclass(slots=True)
class Request:
    """One request on its way (``AllocParams``).

    Args:
        pool: the pool that it belongs to.
        size_bytes: size as requested.
        rounded: rounded size.
        stream: stream that it is for.
        expandable: whether expandable segments are active for it.
        rejected: whether ``throw_on_cudamalloc_oom`` has stopped it.
    """

    pool: BlockPool
    size_bytes: int
    rounded: int
    stream: int
    expandable: bool
    rejected: bool = False


class NewMemory:
    """Serves the requests that no free block fits."""

    def __init__(self, state: AllocatorState, cached: CachedMemory, active: ActiveBlocks) -> None:
        self._state = state
        self._cached = cached
        self._active = active

    def block_for(self, request: Request) -> Block:
        """A block for a request, by whatever means (``malloc`` after its search).

        Raises:
            OutOfMemoryError: nothing helped.
        """
        if self._state.counts_searches:
            self._cached.collect_garbage()
        block = self._take(request)
        if block is None and not request.rejected:
            block = self._after_release(request)
        if block is None:
            raise self._out_of_memory(request)
        return block

    def _after_release(self, request: Request) -> Block | None:
        """What is tried after a first refusal, in order: more and more is given up."""
        state = self._state
        fallback = state.rules.pool_fallback
        block = self._from_other_pool(request) if fallback is PoolFallback.FIRST else None
        if block is None and release_oversize_blocks(
            request.pool, request.rounded, request.stream, state.settings, self._cached.device
        ):
            block = self._take(request)
        if block is None and not self._cached.private.holds_back:
            self._cached.release(self._active)
            state.counters.num_alloc_retries += 1
            block = self._take(request)
        if block is None and fallback is PoolFallback.LAST:
            block = self._from_other_pool(request)
        return block

    def _take(self, request: Request) -> Block | None:
        """Take memory from the device, within the limits (``alloc_block``)."""
        state = self._state
        segment_bytes = segment_size(request.rounded, state.settings)
        if not state.within_limit(segment_bytes):
            return None
        if self._is_rejected(segment_bytes):
            request.rejected = True
            state.counters.num_oom_rejections += 1
            return None
        if request.expandable:
            return self._cached.expandable.take(request.pool, request.rounded, request.stream)
        return self._cached.device.take(request.pool, segment_bytes, request.stream)

    def _is_rejected(self, segment_bytes: int) -> bool:
        """Whether ``throw_on_cudamalloc_oom`` stops a request before the device is asked."""
        state = self._state
        settings = state.settings
        if not settings.throw_on_cudamalloc_oom or state.capacity_bytes is None:
            return False
        allowed_bytes = int(settings.per_process_memory_fraction * state.capacity_bytes)
        return state.reserved_bytes + segment_bytes > allowed_bytes

    def _from_other_pool(self, request: Request) -> Block | None:
        """A free block of a pool made with ``use_on_oom`` (``try_mempool_fallback``)."""
        if request.pool.owner is not None:
            return None
        state = self._state
        expandable = request.expandable and not state.rules.pages_by_request
        for pool_id in self._cached.private.used_on_oom.ids():
            owner = self._cached.private.by_id.get(pool_id)
            if owner is None or not owner.use_count:
                continue
            pool = owner.half(is_small=request.pool.is_small)
            if state.counts_searches:
                pool.searches += 1
            block = pool.take_best_fit(
                request.rounded, request.stream, state.settings, expandable=expandable
            )
            if block is not None:
                request.expandable = expandable
                return block
        return None

    def _out_of_memory(self, request: Request) -> OutOfMemoryError:
        state = self._state
        # Without an end of the device the limit has bound (or a request larger than any device).
        allowed_bytes = state.reserved_bytes if state.allowed_bytes is None else state.allowed_bytes
        error = OutOfMemoryError(
            requested_bytes=request.size_bytes,
            segment_bytes=segment_size(request.rounded, state.settings),
            capacity_bytes=allowed_bytes if state.capacity_bytes is None else state.capacity_bytes,
            allowed_bytes=allowed_bytes,
            reserved_bytes=state.reserved_bytes,
            allocated_bytes=state.counters.all.allocated_bytes.current,
            largest_free_bytes=request.pool.free.largest(request.stream),
            stream=request.stream,
            is_rejection=request.rejected,
        )
        if not request.rejected:
            pool_id = request.pool.pool_id
            state.emit("oom", error.free_bytes, request.rounded, request.stream, pool_id)
            state.counters.num_ooms += 1
        return error
