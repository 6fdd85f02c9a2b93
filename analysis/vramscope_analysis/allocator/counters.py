"""The allocator's counters, in the form of ``torch._C._cuda_memoryStats``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from vramscope_analysis.allocator.events import PoolId
from vramscope_analysis.allocator.settings import UNLIMITED

STAT_NAMES: Final = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)


class Stat:
    """One gauge with its peak and its totals (``struct Stat``)."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        self.current = 0
        self.peak = 0
        self.allocated = 0
        self.freed = 0

    def increase(self, amount: int) -> None:
        """Count up; the peak follows."""
        self.allocated += amount
        current = self.current = self.current + amount
        if current > self.peak:
            self.peak = current

    def decrease(self, amount: int) -> None:
        """Count down."""
        self.freed += amount
        self.current -= amount

    def change(self, amount: int) -> None:
        """Count a net change of either sign."""
        if amount > 0:
            self.increase(amount)
        elif amount < 0:
            self.decrease(-amount)

    def reset_peak(self) -> None:
        """The peak is what is current (``Stat::reset_peak``)."""
        self.peak = self.current

    def reset_accumulated(self) -> None:
        """The totals begin anew (``Stat::reset_accumulated``)."""
        self.allocated = self.freed = 0

    def as_dict(self) -> dict[str, int]:
        """The four leaves."""
        return {
            "current": self.current,
            "peak": self.peak,
            "allocated": self.allocated,
            "freed": self.freed,
        }


class StatGroup:
    """The nine stats of one pool, or of all pools together."""

    __slots__ = STAT_NAMES

    def __init__(self) -> None:
        self.allocation = Stat()
        self.segment = Stat()
        self.active = Stat()
        self.inactive_split = Stat()
        self.allocated_bytes = Stat()
        self.reserved_bytes = Stat()
        self.active_bytes = Stat()
        self.inactive_split_bytes = Stat()
        self.requested_bytes = Stat()

    def block_allocated(self, size_bytes: int, requested_bytes: int) -> None:
        """A block was handed out (``alloc_found_block``)."""
        self.allocation.increase(1)
        self.allocated_bytes.increase(size_bytes)
        self.active.increase(1)
        self.active_bytes.increase(size_bytes)
        self.requested_bytes.increase(requested_bytes)

    def free_requested(self, size_bytes: int) -> None:
        """A block was given back, perhaps not yet by every stream (``free``)."""
        self.allocation.decrease(1)
        self.allocated_bytes.decrease(size_bytes)

    def free_completed(self, size_bytes: int, requested_bytes: int) -> None:
        """A block is free again (``free_block``)."""
        self.active.decrease(1)
        self.active_bytes.decrease(size_bytes)
        self.requested_bytes.decrease(requested_bytes)

    def inactive_split_changed(self, blocks: int, size_bytes: int) -> None:
        """Net change of the free pieces of split segments."""
        self.inactive_split.change(blocks)
        self.inactive_split_bytes.change(size_bytes)


POOL_KINDS: Final = ("all", "small_pool", "large_pool")


class Counters:
    """Every counter of one device (``struct DeviceStats``).

    Args:
        max_split_size_bytes: the option at the start. PyTorch never changes the counter.
        rejections: whether ``num_oom_rejections`` exists.
        private_pools: whether ``reserved_bytes_by_private_pools`` exists.
    """

    def __init__(
        self, max_split_size_bytes: int, *, rejections: bool = False, private_pools: bool = False
    ) -> None:
        self.all = StatGroup()
        self.small_pool = StatGroup()
        self.large_pool = StatGroup()
        self.oversize_allocations = Stat()
        self.oversize_segments = Stat()
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.num_oom_rejections = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0
        self.num_device_free = 0
        self.reserved_by_private_pools: dict[PoolId, dict[str, Stat]] = {}
        self.max_split_size_bytes = max_split_size_bytes
        self._has_rejections = rejections
        self._has_private_pools = private_pools

    def private_reserved(self, pool_id: PoolId, kind: str) -> tuple[Stat, Stat]:
        """Reserved bytes of a private pool: all of it, and its small or large part."""
        stats = self.reserved_by_private_pools.get(pool_id)
        if stats is None:
            stats = {name: Stat() for name in POOL_KINDS}
            self.reserved_by_private_pools[pool_id] = stats
        return stats["all"], stats[kind]

    def reset_peaks(self) -> None:
        """Set every peak to its current value (``resetPeakStats``)."""
        for stat in self._stats():
            stat.reset_peak()

    def reset_accumulated(self) -> None:
        """Begin every total anew (``resetAccumulatedStats``)."""
        for stat in self._stats():
            stat.reset_accumulated()
        self.num_alloc_retries = self.num_ooms = self.num_oom_rejections = 0
        self.num_sync_all_streams = self.num_device_alloc = self.num_device_free = 0

    def as_dict(self) -> dict[str, Any]:
        """Nested dict with the leaves of the release: 122 up to 2.11."""
        groups = self._groups()
        nested: dict[str, Any] = {
            name: {pool: getattr(group, name).as_dict() for pool, group in groups.items()}
            for name in STAT_NAMES
        }
        nested["oversize_allocations"] = self.oversize_allocations.as_dict()
        nested["oversize_segments"] = self.oversize_segments.as_dict()
        nested["num_alloc_retries"] = self.num_alloc_retries
        nested["num_ooms"] = self.num_ooms
        if self._has_rejections:
            nested["num_oom_rejections"] = self.num_oom_rejections
        unlimited = self.max_split_size_bytes == UNLIMITED
        nested["max_split_size"] = -1 if unlimited else self.max_split_size_bytes
        nested["num_sync_all_streams"] = self.num_sync_all_streams
        nested["num_device_alloc"] = self.num_device_alloc
        nested["num_device_free"] = self.num_device_free
        if self._has_private_pools:
            nested["reserved_bytes_by_private_pools"] = {
                pool_id: {kind: stat.as_dict() for kind, stat in stats.items()}
                for pool_id, stats in self.reserved_by_private_pools.items()
            }
        return nested

    def _groups(self) -> dict[str, StatGroup]:
        return {
            "all": self.all,
            "small_pool": self.small_pool,
            "large_pool": self.large_pool,
        }

    def _stats(self) -> Iterator[Stat]:
        for group in self._groups().values():
            for name in STAT_NAMES:
                yield getattr(group, name)
        for stats in self.reserved_by_private_pools.values():
            yield from stats.values()
        yield self.oversize_allocations
        yield self.oversize_segments
