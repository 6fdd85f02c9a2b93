"""Devices beside the one that trains, on which this process has reserved memory as well.

A pipeline of stages, a reward model next to the trained one, an evaluation on a second card: the
charts are about one device, and what the process holds on others is columns with "@N" behind the
name of the series, N being CUDA's number of the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from vramscope.collectors.driver import DriverMonitor
from vramscope.devices.caching_allocator import (
    Stats,
    counter_bytes,
    current_bytes,
    initialised_cuda,
    read_stats,
)
from vramscope.devices.cuda import CudaDevice
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo

MAX_DEVICES: Final = 16
"""Devices that get columns; a machine has rarely more."""

_INTERVAL_NS: Final = 500_000_000
_LOOK_NS: Final = 2_000_000_000
"""How often devices are looked for that were not in use before."""

_COUNTERS: Final = (
    ("allocated_bytes", "current"),
    ("allocated_bytes", "peak"),
    ("active_bytes", "current"),
    ("reserved_bytes", "current"),
    ("reserved_bytes", "peak"),
)
_MEMORY: Final = ("device.total_bytes", "device.used_bytes", "device.free_bytes")


class _Further:
    """One of them."""

    def __init__(self, index: int, monitor: DriverMonitor) -> None:
        self.index = index
        self.monitor = monitor
        self.info = DeviceInfo(index, "")
        self.is_named = False
        """Whether CUDA has told its UUID. The driver numbers devices in its own order: before
        that, its numbers could be those of another card."""

    @property
    def names(self) -> list[str]:
        """Series of this device."""
        counters = [f"{name}.all.{gauge}@{self.index}" for name, gauge in _COUNTERS]
        return counters + [f"{name}@{self.index}" for name in _MEMORY]

    def values(self, stats: Stats | None) -> list[int]:
        """The newest numbers, in the order of the names."""
        counters = [counter_bytes(stats, name, gauge) for name, gauge in _COUNTERS]
        if not self.is_named:
            return [*counters, *([UNKNOWN] * len(_MEMORY))]
        memory = self.monitor.read_memory()
        return [*counters, memory.total_bytes, memory.used_bytes, memory.free_bytes]

    def take_properties(self, properties: Any) -> None:
        """What CUDA says of it; only where CUDA may be asked."""
        uuid = getattr(properties, "uuid", None)
        total_bytes = getattr(properties, "total_memory", None)
        name = str(getattr(properties, "name", ""))
        if uuid is not None and self.monitor.select(self.index, str(uuid)):
            self.is_named = True
            name = self.monitor.name or name
            total_bytes = self.monitor.total_bytes or total_bytes
        self.info = DeviceInfo(self.index, name, self.monitor.uuid, total_bytes)


class FurtherDevices:
    """Finds them, and reads the main counters of each. A collector.

    Args:
        device: the one that is watched in full: whatever else is in use is further.
        follow_current_device: asks which one that is; at step boundaries.
        clock: says when to look.
        monitor: makes a reader of the driver's numbers.
    """

    def __init__(
        self,
        device: CudaDevice,
        follow_current_device: Callable[[], None],
        clock: Clock,
        monitor: Callable[[], DriverMonitor],
    ) -> None:
        self._device = device
        self._follow_current_device = follow_current_device
        self._clock = clock
        self._monitor = monitor
        self._found: dict[int, _Further] = {}
        self._shown: list[_Further] = []
        self._device_count: int | None = None
        self._due_ns = 0
        self._look_ns = 0
        self._names: tuple[str, ...] = ()
        self._values: list[int] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the devices that were found so far."""
        return self._names

    @property
    def infos(self) -> list[DeviceInfo]:
        """Name, UUID and size of each, as far as they are known."""
        return [further.info for further in self._shown]

    def read(self) -> list[int]:
        """The numbers as last read, twice a second. Sampler thread; makes no CUDA call."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns:
            return self._values
        self._due_ns = now_ns + _INTERVAL_NS
        c_module = initialised_cuda()
        if c_module is None or not self._device.may_read_counters():
            self._values = [UNKNOWN] * len(self._names)
            return self._values
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + _LOOK_NS
            self._look(c_module)
        self._show()
        self._values = [
            value
            for further in self._shown
            for value in further.values(read_stats(c_module, further.index))
        ]
        return self._values

    def at_boundary(self) -> None:
        """Learn from CUDA which devices they all are. Training thread, between two steps."""
        self._follow_current_device()
        if not self._shown:
            return
        unnamed = [further for further in self._shown if not further.info.name]
        if not unnamed or initialised_cuda() is None or self._device.busy_reason() is not None:
            return
        torch: Any = sys.modules["torch"]
        for further in unnamed:
            further.take_properties(torch.cuda.get_device_properties(further.index))

    def _look(self, c_module: Any) -> None:
        """A device stays once it was in use: its memory may come back."""
        for index in range(MAX_DEVICES if self._device_count is None else self._device_count):
            if index == self._device.index or index in self._found:
                continue
            stats = read_stats(c_module, index)
            if stats is None:
                self._device_count = index  # there are no more than these
                return
            if current_bytes(stats, "reserved_bytes") > 0:
                self._found[index] = _Further(index, self._monitor())

    def _show(self) -> None:
        """The job may have moved: what was further is watched in full then, and the other way."""
        shown = [self._found[index] for index in sorted(self._found) if index != self._device.index]
        if shown != self._shown:
            self._shown = shown
            self._names = tuple(name for further in shown for name in further.names)
