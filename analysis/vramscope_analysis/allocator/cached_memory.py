"""The memory that is held but free, in all pools: how it goes back to the device."""

from __future__ import annotations

from vramscope_analysis.allocator.active_blocks import ActiveBlocks
from vramscope_analysis.allocator.cache_release import collect_garbage, release_blocks
from vramscope_analysis.allocator.device_memory import DeviceMemory
from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.allocator.expandable_memory import ExpandableMemory
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID, BlockPool
from vramscope_analysis.allocator.private_pools import PrivatePools
from vramscope_analysis.allocator.state import AllocatorState


class CachedMemory:
    """The default pools and the private ones, and what they hold from the device."""

    def __init__(self, state: AllocatorState) -> None:
        self.small = state.new_pool(None, True)
        self.large = state.new_pool(None, False)
        self.private = PrivatePools(state.new_pool, state.rules)
        self.device = DeviceMemory(state)
        self.expandable = ExpandableMemory(state)
        self._state = state

    def pool_for(self, pool_id: PoolId | None, stream: int, *, is_small: bool) -> BlockPool:
        """Pool that a request is served from (``get_pool``).

        Args:
            pool_id: the pool that is asked for; ``None``: what a scope says, else the default.
            stream: stream of the request.
            is_small: whether the rounded size belongs to the small pools.
        """
        if pool_id is None:
            owner = self.private.diverted_to(stream)
        else:
            owner = None if pool_id == DEFAULT_POOL_ID else self.private.get(pool_id)
        if owner is not None:
            return owner.half(is_small=is_small)
        return self.small if is_small else self.large

    def release(self, active: ActiveBlocks, pool_id: PoolId = DEFAULT_POOL_ID) -> None:
        """Release all that is free (``release_cached_blocks``).

        The default pools first, unless a capture is under way; then the private pools that
        nobody uses any more. Of a private pool by its id only that one, if nobody uses it.

        Args:
            active: blocks that wait for other streams: they are waited for.
            pool_id: the pool; (0, 0) is all that may be released.

        Raises:
            RuntimeError: a scope is open, in releases that refuse that (up to 2.7).
        """
        everything = pool_id == DEFAULT_POOL_ID
        if everything and not self.private.holds_back:
            active.synchronize()
            for pool in (self.large, self.small):
                release_blocks(pool, self.device, self.expandable)
        elif everything and self._state.rules.flush_in_scope_fails:
            self._state.counters.num_sync_all_streams += 1
            raise RuntimeError("expected no capture and no pool scope, got one under way")
        for owner in self.private.freeable.values():
            if not everything:
                if owner.pool_id != pool_id:
                    continue
                active.synchronize(owner)
            for pool in (owner.small, owner.large):
                release_blocks(pool, self.device, self.expandable)
            if not owner.malloc_count:
                self.private.forget(owner.pool_id)

    def collect_garbage(self) -> None:
        """Release old blocks above the threshold (``garbage_collect_cached_blocks``).

        Only the large default pool is looked at, without waiting for any stream.
        """
        state = self._state
        assert state.limit_bytes is not None
        threshold = state.settings.garbage_collection_threshold
        excess_bytes = state.reserved_bytes - int(threshold * state.limit_bytes)
        if excess_bytes > 0:
            collect_garbage(self.large, excess_bytes, self.device)
