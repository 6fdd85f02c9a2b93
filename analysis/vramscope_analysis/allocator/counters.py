"""The allocator's counters, in the form of ``torch._C._cuda_memoryStats``."""

from __future__ import annotations

from typing import Any, Final

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

    def segment_allocated(self, size_bytes: int) -> None:
        """A segment came from the device (``alloc_block``)."""
        self.segment.increase(1)
        self.reserved_bytes.increase(size_bytes)

    def segment_freed(self, size_bytes: int) -> None:
        """A segment went back to the device (``release_block``)."""
        self.segment.decrease(1)
        self.reserved_bytes.decrease(size_bytes)


class Counters:
    """Every counter of one device (``struct DeviceStats``)."""

    def __init__(self, max_split_size_bytes: int) -> None:
        self.all = StatGroup()
        self.small_pool = StatGroup()
        self.large_pool = StatGroup()
        self.oversize_allocations = Stat()
        self.oversize_segments = Stat()
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0
        self.num_device_free = 0
        self.max_split_size_bytes = max_split_size_bytes

    def reset_peaks(self) -> None:
        """Set every peak to its current value (``resetPeakStats``)."""
        stats = [getattr(group, name) for group in self._groups().values() for name in STAT_NAMES]
        for stat in (*stats, self.oversize_allocations, self.oversize_segments):
            stat.peak = stat.current

    def as_dict(self) -> dict[str, Any]:
        """Nested dict with the 122 leaves of torch 2.4 to 2.11."""
        groups = self._groups()
        nested: dict[str, Any] = {
            name: {pool: getattr(group, name).as_dict() for pool, group in groups.items()}
            for name in STAT_NAMES
        }
        nested["oversize_allocations"] = self.oversize_allocations.as_dict()
        nested["oversize_segments"] = self.oversize_segments.as_dict()
        nested["num_alloc_retries"] = self.num_alloc_retries
        nested["num_ooms"] = self.num_ooms
        unlimited = self.max_split_size_bytes == UNLIMITED
        nested["max_split_size"] = -1 if unlimited else self.max_split_size_bytes
        nested["num_sync_all_streams"] = self.num_sync_all_streams
        nested["num_device_alloc"] = self.num_device_alloc
        nested["num_device_free"] = self.num_device_free
        return nested

    def _groups(self) -> dict[str, StatGroup]:
        return {
            "all": self.all,
            "small_pool": self.small_pool,
            "large_pool": self.large_pool,
        }
