"""What AMD's driver says about one device, through the package ``amdsmi`` that ROCm brings along.

The calls are those that PyTorch itself makes for ``torch.cuda.utilization`` and the like. Sizes are
whole MiB: finer ones are not told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from vramscope.collectors.process_listing import ProcessListing
from vramscope.collectors.self_cost import ReleasedTime
from vramscope.devices.device import DeviceMemory
from vramscope.devices.visible import visible_devices
from vramscope.fork_gate import no_fork
from vramscope.notices import Notices
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN

_INTERVAL_NS: Final = 1_000_000_000
_MIB: Final = 1 << 20


class AmdSmiLibrary:
    """Calls into ``amdsmi`` that answer ``None`` instead of raising.

    Args:
        notices: told once when it is missing.
        load: how to get the module.
        released: where the time of the calls is counted: they give the GIL away.
    """

    def __init__(
        self,
        notices: Notices,
        load: Callable[[], ModuleType] = lambda: import_module("amdsmi"),
        released: ReleasedTime | None = None,
    ) -> None:
        self._notices = notices
        self._load = load
        self._released = released or ReleasedTime()
        self._module: Any = None
        self._tried = False

    def open(self) -> bool:
        """Load and initialise at the first call; whether it can be used.

        It is never shut down: PyTorch may be using it as well.
        """
        if not self._tried:
            self._tried = True
            with no_fork():
                try:
                    self._module = self._load()
                except (ImportError, OSError, KeyError):  # the package, or the library under it
                    self._notices.note(
                        "amdsmi", "amdsmi is not installed: device totals are unknown"
                    )
                    return False
            self.ask("amdsmi_init")
            if not self.ask("amdsmi_get_processor_handles"):
                self._module = None
                self._notices.note("amdsmi", "amdsmi finds no device: device totals are unknown")
        return self._module is not None

    def ask(self, function: str, *args: Any) -> Any:
        """What ``function`` answers, ``None`` if there is no such function or it fails."""
        module = self._module
        call = getattr(module, function, None)
        if call is None:
            return None
        start_ns = time.perf_counter_ns()
        try:
            with no_fork():
                return call(*args)
        except module.AmdSmiException:
            return None
        finally:
            self._released.add(start_ns)

    def constant(self, group: str, name: str) -> Any:
        """A constant of an enumeration, ``None`` if this version has none of that name."""
        return getattr(getattr(self._module, group, None), name, None)


class AmdSmiMonitor:
    """Reads one device once a second. Implements ``DriverMonitor``.

    Args:
        library: the guarded calls.
        clock: says when to read.
        environ: where the devices that are visible to the job are named.
    """

    def __init__(self, library: AmdSmiLibrary, clock: Clock, environ: Mapping[str, str]) -> None:
        self._library = library
        self._clock = clock
        self._environ = environ
        self._handle: Any = None
        self._due_ns = 0
        self._latest = DeviceMemory()
        self.name = ""
        self.uuid = ""
        self.total_bytes: int | None = None

    def select(self, index: int, uuid: str | None = None) -> bool:
        """Choose the device that PyTorch shows as ``index``; whether the driver has it."""
        del uuid  # PyTorch and this library write it differently
        self._latest = DeviceMemory()
        self._due_ns = 0
        self._handle = self._find(index) if self._library.open() else None
        if self._handle is None:
            self.name, self.uuid, self.total_bytes = "", "", None
            return False
        asic: Any = self._library.ask("amdsmi_get_gpu_asic_info", self._handle) or {}
        self.name = str(asic.get("market_name", "AMD GPU"))
        self.uuid = str(self._library.ask("amdsmi_get_gpu_device_uuid", self._handle) or "")
        self._read_memory()
        total_bytes = self._latest.total_bytes
        self.total_bytes = None if total_bytes == UNKNOWN else total_bytes
        return True

    def driver_version(self) -> str:
        """Version of the driver, empty if unknown."""
        info: Any = self._library.ask("amdsmi_get_gpu_driver_info", self._handle) or {}
        return str(info.get("driver_version", ""))

    def last_listing(self) -> ProcessListing:
        """Nothing: the memory of single processes is not read."""
        return ProcessListing()

    def read(self, reserved_bytes: int = 0) -> DeviceMemory:
        """One reading; values that are not due are repeated."""
        now_ns = self._clock.monotonic_ns()
        if self._handle is not None and now_ns >= self._due_ns:
            self._due_ns = now_ns + _INTERVAL_NS
            self._read_memory()
            self._read_load()
        return copy(self._latest)

    def read_memory(self) -> DeviceMemory:
        """Memory alone, read now."""
        if self._handle is not None:
            self._read_memory()
        return copy(self._latest)

    def _read_memory(self) -> None:
        usage: Any = self._library.ask("amdsmi_get_gpu_vram_usage", self._handle) or {}
        total, used = _number(usage.get("vram_total")), _number(usage.get("vram_used"))
        is_known = UNKNOWN not in (total, used) and total > 0
        latest = self._latest
        latest.total_bytes = total * _MIB if is_known else UNKNOWN
        latest.used_bytes = used * _MIB if is_known else UNKNOWN
        latest.free_bytes = (total - used) * _MIB if is_known else UNKNOWN

    def _read_load(self) -> None:
        ask, latest = self._library.ask, self._latest
        activity: Any = ask("amdsmi_get_gpu_activity", self._handle) or {}
        latest.utilization_percent = _number(activity.get("gfx_activity"))
        power: Any = ask("amdsmi_get_power_info", self._handle) or {}
        watts = _number(power.get("current_socket_power"))
        if watts == UNKNOWN:
            watts = _number(power.get("average_socket_power"))
        latest.power_mw = UNKNOWN if watts == UNKNOWN else watts * 1000
        place = self._library.constant("AmdSmiTemperatureType", "JUNCTION")
        current = self._library.constant("AmdSmiTemperatureMetric", "CURRENT")
        if place is not None and current is not None:
            heat_c = ask("amdsmi_get_temp_metric", self._handle, place, current)
            latest.temperature_c = _number(heat_c)

    def _find(self, index: int) -> Any:
        """ROCm hides devices twice: first those that its runtime does not see, then HIP's."""
        handles = list(self._library.ask("amdsmi_get_processor_handles") or [])
        uuids = [
            str(self._library.ask("amdsmi_get_gpu_device_uuid", each) or "") for each in handles
        ]
        hip = self._environ.get("HIP_VISIBLE_DEVICES", self._environ.get("CUDA_VISIBLE_DEVICES"))
        for setting in (self._environ.get("ROCR_VISIBLE_DEVICES"), hip):
            chosen = [device.position for device in visible_devices(setting, uuids)]
            handles = [handles[each] for each in chosen if each is not None]
            uuids = [uuids[each] for each in chosen if each is not None]
        return handles[index] if index < len(handles) else None


def _number(value: Any) -> int:
    """A number as this library gives it; "N/A" and the like are unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return UNKNOWN
    return int(value) if value < 1 << 62 else UNKNOWN
