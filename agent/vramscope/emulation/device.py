"""The emulated device, as the rest of the agent sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vramscope.devices.device import DeviceMemory
from vramscope.emulation.storages import StorageMirror
from vramscope_analysis.allocator import memory_summary
from vramscope_protocol.messages import DeviceInfo


class EmulatedDevice:
    """Answers from the allocator model. Implements ``Device``; every thread may call everything."""

    def __init__(self, mirror: StorageMirror, capacity_bytes: int) -> None:
        self._mirror = mirror
        self._info = DeviceInfo(index=0, name="emulated", total_bytes=capacity_bytes, emulated=True)

    @property
    def info(self) -> DeviceInfo:
        """Name and size."""
        return self._info

    def memory_stats(self) -> Mapping[str, Any]:
        """Counters in the nested form of ``torch._C._cuda_memoryStats``."""
        with self._mirror.model() as model:
            return model.memory_stats()

    def device_memory(self) -> DeviceMemory:
        """Totals. Only what the allocator holds is in use: no context is made up."""
        with self._mirror.model() as model:
            used_bytes, total_bytes = model.reserved_bytes, model.allowed_bytes
        return DeviceMemory(
            total_bytes=total_bytes, used_bytes=used_bytes, free_bytes=total_bytes - used_bytes
        )

    def busy_reason(self) -> str | None:
        """Always ``None``: nothing captures here."""
        return None

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks, as ``torch.cuda.memory_snapshot()`` has them."""
        with self._mirror.model() as model:
            return model.segments()

    def empty_cache(self) -> None:
        """Give unused segments back."""
        with self._mirror.model() as model:
            model.empty_cache()

    def reset_peaks(self) -> None:
        """Set every peak counter to its current value."""
        with self._mirror.model() as model:
            model.reset_peaks()

    def memory_summary(self) -> str:
        """The counters as a table."""
        return memory_summary(self.memory_stats(), "0 (emulated)")
