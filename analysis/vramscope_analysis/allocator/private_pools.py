"""Private pools: memory set aside for CUDA graphs and for ``torch.cuda.MemPool``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID, BlockPool
from vramscope_analysis.allocator.pool_table import PoolTable
from vramscope_analysis.allocator.version_rules import VersionRules


class PrivatePool:
    """One private pool (``struct PrivatePool``): free blocks of its own, small and large.

    Args:
        pool_id: its id.
        new_half: makes the one for small and the one for large requests.
        has_allocator: whether its memory comes from an allocator of the user's; expandable
            segments are off in such a pool.
    """

    def __init__(
        self,
        pool_id: PoolId,
        new_half: Callable[[PrivatePool, bool], BlockPool],
        *,
        has_allocator: bool = False,
    ) -> None:
        self.pool_id = pool_id
        self.has_allocator = has_allocator
        self.use_count = 1
        self.malloc_count = 0  # cudaMalloc_count: what it still holds from the device
        self.large = new_half(self, False)
        self.small = new_half(self, True)

    def half(self, *, is_small: bool) -> BlockPool:
        """The pool for small, or for large requests."""
        return self.small if is_small else self.large


@dataclass(frozen=True)
class PoolScope:
    """A stretch of a program whose requests go to a private pool (``captures_underway``)."""

    pool_id: PoolId
    is_capture: bool
    streams: frozenset[int] | None

    def holds(self, stream: int) -> bool:
        """Whether requests of a stream belong to the scope."""
        return self.streams is None or stream in self.streams


class PrivatePools:
    """The private pools of one device, and the scopes that requests are diverted by.

    Args:
        new_half: makes half a pool, given its owner and whether it is the small half.
        rules: which scope goes first, and what counts as a capture.
    """

    def __init__(
        self, new_half: Callable[[PrivatePool, bool], BlockPool], rules: VersionRules
    ) -> None:
        self.by_id: dict[PoolId, PrivatePool] = {}  # graph_pools
        self.freeable = PoolTable[PrivatePool]()  # graph_pools_freeable
        self.used_on_oom = PoolTable[None]()
        self.scopes: list[PoolScope] = []
        self.holds_back = False
        self._never_split: set[PoolId] = set()
        self._new_half = new_half
        self._rules = rules

    def create(self, pool_id: PoolId, *, has_allocator: bool = False) -> PrivatePool:
        """Make a pool or use it once more (``create_or_incref_pool``).

        Raises:
            ValueError: the id of the default pool, or a pool that nobody uses any more.
        """
        if pool_id == DEFAULT_POOL_ID:
            raise ValueError(f"expected the id of a private pool, got {pool_id}")
        pool = self.by_id.get(pool_id)
        if pool is None:
            pool = PrivatePool(pool_id, self._new_half, has_allocator=has_allocator)
            self.by_id[pool_id] = pool
            self._apply_no_split(pool_id)
        elif not pool.use_count:
            raise ValueError(f"expected a pool that is in use, got {pool_id} after its release")
        else:
            pool.use_count += 1
        return pool

    def release(self, pool_id: PoolId) -> None:
        """Use a pool once less; at none its memory may go back (``releasePool``).

        Raises:
            ValueError: nobody uses that pool.
        """
        pool = self.by_id.get(pool_id)
        if pool is None or not pool.use_count:
            raise ValueError(f"expected a pool that is in use, got {pool_id}")
        pool.use_count -= 1
        if not pool.use_count:
            self.freeable.insert(pool_id, pool)

    def forget(self, pool_id: PoolId) -> None:
        """A pool that is no longer used has given everything back (``release_cached_blocks``)."""
        del self.by_id[pool_id]
        self.freeable.remove(pool_id)

    def never_split(self, pool_id: PoolId) -> None:
        """Hand out only whole segments from a pool (``setNoSplit``)."""
        self._never_split.add(pool_id)
        self._apply_no_split(pool_id)

    def begin(self, pool_id: PoolId, *, is_capture: bool, streams: Iterable[int] | None) -> None:
        """Divert requests to a pool from now on (``beginAllocateToPool``).

        Raises:
            ValueError: that is so already.
        """
        if any(scope.pool_id == pool_id for scope in self.scopes):
            raise ValueError(f"expected a pool without a scope, got {pool_id}")
        self.create(pool_id)
        kept = None if streams is None else frozenset(streams)
        self.scopes.append(PoolScope(pool_id, is_capture, kept))
        self._scopes_changed()

    def end(self, pool_id: PoolId) -> None:
        """Divert no more requests to a pool (``endAllocateToPool``).

        Raises:
            ValueError: none are.
        """
        for scope in self.scopes:
            if scope.pool_id == pool_id:
                self.scopes.remove(scope)
                self._scopes_changed()
                return
        raise ValueError(f"expected a pool with a scope, got {pool_id}")

    def diverted_to(self, stream: int) -> PrivatePool | None:
        """The private pool that scopes give a request of a stream to (``get_pool``)."""
        scopes = reversed(self.scopes) if self._rules.newest_scope_first else self.scopes
        for scope in scopes:
            if scope.holds(stream):
                return self.by_id[scope.pool_id]
        return None

    def get(self, pool_id: PoolId) -> PrivatePool:
        """A pool by its id; one that nobody made is made."""
        pool = self.by_id.get(pool_id)
        return self.create(pool_id) if pool is None else pool

    def _apply_no_split(self, pool_id: PoolId) -> None:
        pool = self.by_id.get(pool_id)
        if pool is not None and pool_id in self._never_split:
            pool.small.never_splits = pool.large.never_splits = True

    def _scopes_changed(self) -> None:
        # While this holds, no event is looked at and the default pools release nothing.
        captures_only = self._rules.only_captures_hold_back
        self.holds_back = any(scope.is_capture or not captures_only for scope in self.scopes)
