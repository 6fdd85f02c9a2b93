"""What PyTorch says of the device that ran out of memory, which need not be the watched one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope.collectors.allocator import flatten
from vramscope.devices.caching_allocator import (
    initialised_cuda,
    read_snapshot,
    read_stats,
    snapshot_obstacle,
)
from vramscope.devices.cuda import storage_on
from vramscope.devices.device import Device
from vramscope.tensors.census import Storage

MAX_BLOCKS: Final = 400_000
"""Of more, the list of the segments would take too long."""


class DeviceReadings:
    """Reads counters and segments. No method makes a call of CUDA.

    Args:
        device: the watched one.
        emulated: whether it is an emulated one, the only one that there is.
    """

    def __init__(self, device: Device, *, emulated: bool) -> None:
        self._device = device
        self._emulated = emulated

    @property
    def watched(self) -> int:
        """Number of the device that the agent watches."""
        return self._device.info.index

    def counters(self, index: int) -> dict[str, int]:
        """Every counter by its name; none where the allocator has no counters."""
        stats = self._stats(index)
        return {} if stats is None else flatten(stats)

    def segments(
        self, index: int, counters: Mapping[str, int]
    ) -> tuple[list[dict[str, Any]], str | None]:
        """The segments with their blocks, or why there are none."""
        blocks = counters.get("active.all.current", 0)
        blocks += counters.get("inactive_split.all.current", 0)
        if blocks > MAX_BLOCKS:
            return [], f"{blocks} blocks are too many to list in time"
        c_module = None if self._emulated else initialised_cuda()
        if c_module is None or index == self.watched:
            # It knows best what must not be asked for here, on the agent's threads above all.
            obstacle = self._device.why_no_segments()
            return ([], obstacle) if obstacle is not None else (self._device.segments(), None)
        obstacle = snapshot_obstacle(c_module)
        if obstacle is not None:
            return [], obstacle
        segments: list[dict[str, Any]] = read_snapshot(c_module)["segments"]
        return [each for each in segments if each["device"] == index], None

    def storage(self, index: int) -> Storage:
        """What finds a tensor's storage on that device."""
        if self._emulated or index == self.watched or initialised_cuda() is None:
            return self._device.storage
        return _on(index)

    def total_bytes(self, index: int) -> int | None:
        """Size of the device, if it is the watched one."""
        return self._device.info.total_bytes if index == self.watched else None

    def limit_bytes(self, index: int) -> int | None:
        """What the process may have of it: its own cap, else the device."""
        info = self._device.info
        if index != self.watched:
            return None
        return info.total_bytes if info.limit_bytes is None else info.limit_bytes

    def name(self, index: int) -> str:
        """Name of the device, if it is the watched one."""
        return self._device.info.name if index == self.watched else ""

    def _stats(self, index: int) -> Mapping[str, Any] | None:
        c_module = None if self._emulated else initialised_cuda()
        if c_module is None or index == self.watched:
            return self._device.memory_stats()
        return read_stats(c_module, index)


def _on(index: int) -> Callable[[Any], tuple[int, int] | None]:
    return lambda tensor: storage_on(tensor, index)
