"""A ``pynvml`` whose devices and failures the test sets."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


class FakeNvml(ModuleType):
    """Answers like ``pynvml`` for devices that are plain dictionaries."""

    NVML_TEMPERATURE_GPU = 0
    nvmlMemory_v2 = 2

    class NVMLError(Exception):
        """Base of NVML's errors."""

    class NVMLError_NotSupported(NVMLError):
        """The device cannot tell."""

    class NVMLError_FunctionNotFound(NVMLError):
        """The driver is too old."""

    class NVMLError_NoPermission(NVMLError):
        """Not for this user."""

    class NVMLError_GpuIsLost(NVMLError):
        """Fallen off the bus."""

    class NVMLError_NotFound(NVMLError):
        """No such device."""

    class NVMLError_LibraryNotFound(NVMLError):
        """No driver installed."""

    class NVMLError_LibRmVersionMismatch(NVMLError):
        """The library is newer than the loaded driver."""

    class NVMLLibraryMismatchError(Exception):
        """The driver lacks the version of a function that the package calls. No ``NVMLError``."""

    def __init__(self, *devices: dict[str, Any]) -> None:
        super().__init__("pynvml")
        self.devices = devices
        self.calls: list[str] = []
        self.errors: dict[str, Exception] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or f"_{name}" not in dir(type(self)):
            raise AttributeError(name)

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            if name in self.errors:
                raise self.errors[name]
            # A device may refuse on its own what others answer.
            refusals = args[0].get("errors", {}) if args and isinstance(args[0], dict) else {}
            if name in refusals:
                raise refusals[name]
            return getattr(self, f"_{name}")(*args, **options)

        return call

    def _nvmlInit(self) -> None:
        return None

    def _nvmlShutdown(self) -> None:
        return None

    def _nvmlSystemGetDriverVersion(self) -> str:
        return "580.1"

    def _nvmlDeviceGetCount(self) -> int:
        return len(self.devices)

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return self.devices[index]

    def _nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        parts = [part for device in self.devices for part in (device, *device.get("parts", ()))]
        for device in parts:
            if device["uuid"] == uuid:
                return device
        raise self.NVMLError_NotFound

    def _nvmlDeviceGetName(self, device: Any) -> str:
        return str(device.get("name", "Fake GPU"))

    def _nvmlDeviceGetUUID(self, device: Any) -> str:
        return str(device["uuid"])

    def _nvmlDeviceGetMemoryInfo(self, device: Any, version: int | None = None) -> Any:
        if version is not None and not device.get("has_v2", True):
            raise self.NVMLError_FunctionNotFound
        return SimpleNamespace(
            total=device.get("total", 1000),
            used=device.get("used", 300),
            free=device.get("free", 700),
        )

    def _nvmlDeviceGetUtilizationRates(self, device: Any) -> Any:
        return SimpleNamespace(gpu=device.get("load", 55))

    def _nvmlDeviceGetPowerUsage(self, device: Any) -> int:
        return int(device.get("power", 250_000))

    def _nvmlDeviceGetTemperature(self, device: Any, sensor: int) -> int:
        return int(device.get("heat", 61))

    def _nvmlDeviceGetComputeRunningProcesses(self, device: Any) -> Any:
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=used)
            for pid, used in device.get("processes", ())
        ]

    def _nvmlDeviceGetMigMode(self, device: Any) -> Any:
        if "parts" not in device:
            raise self.NVMLError_NotSupported
        return [1, 1]

    def _nvmlDeviceGetMaxMigDeviceCount(self, device: Any) -> int:
        return 7

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int) -> Any:
        if index >= len(device["parts"]):
            raise self.NVMLError_NotFound
        return device["parts"][index]
