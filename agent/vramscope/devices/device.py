"""What the agent asks of a device, whether it is a CUDA device or an emulated one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo


class DeviceMemory(Struct):
    """What the driver says about a device at one instant; what it does not say is ``UNKNOWN``."""

    total_bytes: int = UNKNOWN
    used_bytes: int = UNKNOWN
    free_bytes: int = UNKNOWN
    process_bytes: int = UNKNOWN
    other_bytes: int = UNKNOWN
    utilization_percent: int = UNKNOWN
    power_mw: int = UNKNOWN
    temperature_c: int = UNKNOWN


class Device(Protocol):
    """One device. ``memory_stats`` and ``device_memory`` are called on the sampler thread.

    Every other method may touch the device: it is called on the training thread at a step
    boundary only, and only while :meth:`busy_reason` is ``None``.
    """

    @property
    def info(self) -> DeviceInfo:
        """Name, UUID, size; ``emulated`` set on an emulated device."""
        ...

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Counters in the nested form of ``torch._C._cuda_memoryStats``; ``None`` if not up."""
        ...

    def device_memory(self) -> DeviceMemory:
        """Totals of the device, all processes included."""
        ...

    def busy_reason(self) -> str | None:
        """Why the device must not be touched now (a stream is capturing, ...), or ``None``."""
        ...

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks, as ``torch.cuda.memory_snapshot()`` has them.

        Touches nothing: the sampler thread may call it too, while :meth:`why_no_segments` is
        ``None``.
        """
        ...

    def why_no_segments(self) -> str | None:
        """Why a list of the segments cannot be had, or only at too high a price; any thread."""
        ...

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage, ``None`` if it does not lie on this device.

        Touches nothing: allowed while the device is busy, on the training thread.

        Args:
            tensor: a plain one: no wrapper, and not sparse.
        """
        ...

    def empty_cache(self) -> None:
        """Give unused segments back to the device."""
        ...

    def reset_peaks(self) -> None:
        """Set every peak counter to its current value."""
        ...

    def memory_summary(self) -> str:
        """Human-readable summary of the counters. Touches nothing: any thread may call it."""
        ...
