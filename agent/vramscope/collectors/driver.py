"""Whoever says what the driver counts: NVML, or AMD's library where PyTorch is built for ROCm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from vramscope.collectors.process_listing import ProcessListing
from vramscope.devices.device import DeviceMemory


class DriverMonitor(Protocol):
    """Reads the driver's numbers of one device; what it does not say is unknown."""

    @property
    def name(self) -> str:
        """Name of the device, empty while none is selected."""
        ...

    @property
    def uuid(self) -> str:
        """Its UUID."""
        ...

    @property
    def total_bytes(self) -> int | None:
        """Its memory."""
        ...

    def select(self, index: int, uuid: str | None = None) -> bool:
        """Choose the device that PyTorch shows as ``index``; whether the driver has it."""
        ...

    def driver_version(self) -> str:
        """Version of the driver, empty if unknown."""
        ...

    def last_listing(self) -> ProcessListing:
        """The processes on the device as last listed."""
        ...

    def read(self, reserved_bytes: int = 0) -> DeviceMemory:
        """One reading."""
        ...

    def read_memory(self) -> DeviceMemory:
        """Memory alone, read now."""
        ...


class Driver:
    """The one of two that fits the job's PyTorch, which may be imported later. Implements both.

    Args:
        nvml: NVIDIA's.
        amd: AMD's.
        is_rocm: whether PyTorch is built for ROCm, ``None`` while that is not known.
    """

    def __init__(
        self,
        nvml: DriverMonitor,
        amd: DriverMonitor,
        is_rocm: Callable[[], bool | None] | None = None,
    ) -> None:
        self._nvml = nvml
        self._amd = amd
        self._is_rocm = is_rocm or torch_is_built_for_rocm
        self._monitor = nvml
        self._selected: tuple[int, str | None] | None = None
        self._is_settled = False

    @property
    def name(self) -> str:
        """Name of the device."""
        return self._monitor.name

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return self._monitor.uuid

    @property
    def total_bytes(self) -> int | None:
        """Its memory."""
        return self._monitor.total_bytes

    def select(self, index: int, uuid: str | None = None) -> bool:
        """Choose the device that PyTorch shows as ``index``; whether the driver has it."""
        self._selected = (index, uuid)
        return self._fitting().select(index, uuid)

    def driver_version(self) -> str:
        """Version of the driver, empty if unknown."""
        return self._monitor.driver_version()

    def last_listing(self) -> ProcessListing:
        """The processes on the device as last listed."""
        return self._monitor.last_listing()

    def read(self, reserved_bytes: int = 0) -> DeviceMemory:
        """One reading."""
        if self._is_settled:
            return self._monitor.read(reserved_bytes)
        before = self._monitor
        if self._fitting() is not before and self._selected is not None:
            self._monitor.select(*self._selected)
        return self._monitor.read(reserved_bytes)

    def read_memory(self) -> DeviceMemory:
        """Memory alone, read now."""
        return self._fitting().read_memory()

    def _fitting(self) -> DriverMonitor:
        is_rocm = None if self._is_settled else self._is_rocm()
        if is_rocm is not None:
            self._is_settled = True
            self._monitor = self._amd if is_rocm else self._nvml
        return self._monitor


def torch_is_built_for_rocm() -> bool | None:
    """Whether the job's PyTorch is one for ROCm; ``None`` while it is not imported."""
    version: Any = getattr(sys.modules.get("torch"), "version", None)
    # Of a module that another thread imports at this moment the rest may be missing.
    return bool(version.hip) if hasattr(version, "hip") else None
