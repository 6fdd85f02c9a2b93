"""The device that the job uses, whatever its maker: settled when the first backend is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vramscope.devices.caching_allocator import initialised_cuda
from vramscope.devices.device import Device, DeviceMemory
from vramscope_protocol.messages import DeviceInfo


class BackendDevice(Device, Protocol):
    """A device that knows whether the job uses its backend."""

    def is_up(self) -> bool:
        """Whether the job has set the backend up; sets nothing up itself."""
        ...

    def follow_current_device(self) -> None:
        """Learn from the training thread which device is its own."""
        ...


class CudaBackend(Device, Protocol):
    """The device of CUDA, or of ROCm under the same names."""

    def follow_current_device(self) -> None:
        """Learn from the training thread which device is its own."""
        ...


class DeviceInUse:
    """Stands for CUDA's device until another backend is seen to be up first. Implements ``Device``.

    Args:
        cuda: the device that is expected.
        others: devices of other backends.
    """

    def __init__(self, cuda: CudaBackend, others: Sequence[BackendDevice]) -> None:
        self._cuda = cuda
        self._others = others
        self._chosen: CudaBackend | BackendDevice = cuda
        self._is_settled = False

    @property
    def is_cuda(self) -> bool:
        """Whether it is CUDA's, as far as is known."""
        return self._chosen is self._cuda

    @property
    def info(self) -> DeviceInfo:
        """Name, UUID and size as far as they are known now."""
        return self._chosen.info

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Counters, ``None`` while no backend is up."""
        self._settle()
        return self._chosen.memory_stats()

    def device_memory(self) -> DeviceMemory:
        """Totals of the device."""
        return self._chosen.device_memory()

    def follow_current_device(self) -> None:
        """Learn from the training thread which device is its own; at a step boundary only."""
        if not self._is_settled:
            self._settle()
        self._chosen.follow_current_device()

    def busy_reason(self) -> str | None:
        """Why the device must not be touched now."""
        return self._chosen.busy_reason()

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks."""
        return self._chosen.segments()

    def why_no_segments(self) -> str | None:
        """Why a list of the segments cannot be had."""
        return self._chosen.why_no_segments()

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage, ``None`` if it does not lie on this device."""
        return self._chosen.storage(tensor)

    def empty_cache(self) -> None:
        """Give unused segments back to the device."""
        self._chosen.empty_cache()

    def reset_peaks(self) -> None:
        """Set every peak counter to its current value."""
        self._chosen.reset_peaks()

    def memory_summary(self) -> str:
        """Human-readable summary of the counters."""
        return self._chosen.memory_summary()

    def _settle(self) -> None:
        if self._is_settled:
            return
        if initialised_cuda() is not None:
            self._is_settled = True
            return
        for device in self._others:
            if device.is_up():
                self._chosen = device
                self._is_settled = True
                return
