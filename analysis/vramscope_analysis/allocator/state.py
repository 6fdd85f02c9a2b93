"""What the parts of one allocator share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from vramscope_analysis.allocator.address_space import AddressSpace
from vramscope_analysis.allocator.counters import Counters, Stat
from vramscope_analysis.allocator.events import EventCallback, PoolId
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.private_pools import PrivatePool
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.version_rules import TieBreak, VersionRules


class AllocatorState:
    """Settings, limits, counters and the way out for events of one device's allocator."""

    __slots__ = (
        "addresses",
        "block_numbers",
        "capacity_bytes",
        "counters",
        "counts_searches",
        "limit_bytes",
        "memory_numbers",
        "on_event",
        "rules",
        "settings",
    )

    def __init__(
        self,
        settings: AllocatorSettings,
        rules: VersionRules,
        *,
        capacity_bytes: int | None,
        limit_bytes: int | None,
        addresses: AddressSpace,
        on_event: EventCallback | None,
    ) -> None:
        self.settings = settings
        self.limit_bytes = limit_bytes
        self.rules = rules
        self.capacity_bytes = capacity_bytes
        self.addresses = addresses
        self.on_event = on_event
        self.counters = Counters(
            settings.max_split_size_bytes,
            rejections=rules.counts_rejections,
            private_pools=rules.counts_private_pools,
        )
        numbers_blocks = rules.tie_break is TieBreak.OLDEST_BLOCK
        self.block_numbers: Iterator[int] | None = itertools.count() if numbers_blocks else None
        self.memory_numbers: Iterator[int] = itertools.count()
        self._limits_changed()

    def change_settings(self, settings: AllocatorSettings) -> None:
        """Other options hold from now on."""
        self.settings = settings
        self._limits_changed()

    def change_limit(self, limit_bytes: int | None) -> None:
        """Another cap of the process (``allowed_memory_maximum``) holds from now on."""
        self.limit_bytes = limit_bytes
        self._limits_changed()

    @property
    def reserved_bytes(self) -> int:
        """Bytes held from the device (``total_allocated_memory``)."""
        return self.counters.all.reserved_bytes.current

    @property
    def allowed_bytes(self) -> int | None:
        """Most that may be held: the limit or all that the device has. ``None``: no end."""
        capacity, limit = self.capacity_bytes, self.limit_bytes
        if capacity is None or limit is None:
            return capacity if limit is None else limit
        return min(limit, capacity)

    def within_limit(self, size_bytes: int) -> bool:
        """Whether the process may take that much more (``alloc_block``)."""
        limit = self.limit_bytes
        return limit is None or self.reserved_bytes + size_bytes <= limit

    def on_device(self, size_bytes: int) -> bool:
        """Whether the device has that much more (``cudaMalloc``, ``cuMemCreate``)."""
        capacity = self.capacity_bytes
        return capacity is None or self.reserved_bytes + size_bytes <= capacity

    def new_pool(self, owner: PrivatePool | None, is_small: bool) -> BlockPool:
        """An empty pool of this allocator."""
        return BlockPool(
            is_small=is_small,
            counters=self.counters,
            owner=owner,
            tie_break=self.rules.tie_break,
            block_numbers=self.block_numbers,
        )

    def reserved_stats(self, pool: BlockPool) -> tuple[Stat, ...]:
        """Where a change of a pool's reserved bytes is counted."""
        stats = (pool.stats_all.reserved_bytes, pool.stats.reserved_bytes)
        if pool.owner is None or not self.rules.counts_private_pools:
            return stats
        kind = "small_pool" if pool.is_small else "large_pool"
        return stats + self.counters.private_reserved(pool.pool_id, kind)

    def emit(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: PoolId
    ) -> None:
        """Report one trace entry (``record_trace``)."""
        if self.on_event is not None:
            self.on_event(action, address, size_bytes, stream, pool_id)

    def _limits_changed(self) -> None:
        # Blocks age only for a threshold that is a part of the limit (``get_free_block``).
        threshold = self.settings.garbage_collection_threshold
        self.counts_searches = self.limit_bytes is not None and threshold > 0
