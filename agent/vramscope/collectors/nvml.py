"""What the driver says about one device: memory of all processes, load, power, temperature.

Each NVML call goes through ctypes and so releases the GIL; getting it back makes a sample three
times as dear, and may take one switch interval. So everything is read once a second, and in one
go, as the second call costs less than the first. Memory is read at once when PyTorch's share has
changed, and four times a second while it moves without it: then it is somebody else's. PCIe
throughput and energy take up to 20 ms a call and are never asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import Any, Final

from vramscope.collectors.nvml_library import Handle, NvmlLibrary
from vramscope.collectors.process_listing import ProcessListing
from vramscope.devices.device import DeviceMemory
from vramscope.devices.visible import visible_devices
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN

INTERVAL_NS: Final = 1_000_000_000
"""Everything is read once in this time; memory at once when PyTorch's share has changed, too."""

MOVING_INTERVAL_NS: Final = 250_000_000
"""So often memory is read while it moves."""

MOVING_NS: Final = 2_000_000_000
"""It moves for so long after it was seen to change."""

_NOT_AVAILABLE: Final = 1 << 63
"""NVML's number for "not available" has all bits set; no number of bytes is as large as this."""
_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"


class NvmlMonitor:
    """Reads one device of NVML; everything it cannot know is ``UNKNOWN``, never 0.

    Args:
        library: the guarded NVML.
        clock: for the once-a-second readings.
        environ: where ``CUDA_VISIBLE_DEVICES`` is looked up.
    """

    def __init__(self, library: NvmlLibrary, clock: Clock, environ: Mapping[str, str]) -> None:
        self._library = library
        self._clock = clock
        self._environ = environ
        self._handle: Handle = None
        self._memory_version: Any = None
        self._reads_v2 = False
        self._reserved_bytes = 0
        self._listed_used_bytes = UNKNOWN
        self._due_ns = self._memory_due_ns = 0
        self._moves_until_ns = 0
        self._driver_version = ""
        self._latest = DeviceMemory()
        self.name = ""
        self.uuid = ""
        self.total_bytes: int | None = None
        self._listing = ProcessListing()

    def select(self, index: int, uuid: str | None = None) -> bool:
        """Choose the device that CUDA shows as ``index``; whether NVML has it.

        Args:
            index: CUDA's index in this process.
            uuid: the device's UUID as CUDA reports it, if CUDA is up: settles every doubt.
        """
        self._latest = DeviceMemory()
        self._listing = ProcessListing()
        self._due_ns = self._memory_due_ns = 0
        # One device may refuse what the next one answers: a slice of one, above all.
        self._library.forget_refusals()
        self._handle = self._find(index, uuid) if self._library.open() else None
        if self._handle is None:
            self.name, self.uuid, self.total_bytes = "", "", None
            return False
        ask = self._library.ask
        self.name = _text(ask("nvmlDeviceGetName", self._handle))
        self.uuid = _text(ask("nvmlDeviceGetUUID", self._handle))
        self._memory_version = self._library.constant("nvmlMemory_v2")
        memory = self._memory_info()
        self.total_bytes = None if memory is None else int(memory.total)
        return True

    def driver_version(self) -> str:
        """Version of the NVIDIA driver, "" if unknown."""
        # Asked for every second, to see whether more is known than was told; it never changes.
        if not self._driver_version:
            self._driver_version = _text(self._library.ask("nvmlSystemGetDriverVersion"))
        return self._driver_version

    def last_listing(self) -> ProcessListing:
        """The processes on the device, as the driver listed them last."""
        return self._listing

    def read(self, reserved_bytes: int = 0) -> DeviceMemory:
        """One reading; values that are not due are repeated.

        Args:
            reserved_bytes: what PyTorch holds: when it changes, memory is read anew; and a
                smaller share of this process is somebody else's.
        """
        latest = self._latest
        if self._handle is None:
            return copy(latest)
        now_ns = self._clock.monotonic_ns()
        is_all_due = now_ns >= self._due_ns
        is_new_share = reserved_bytes != self._reserved_bytes
        if is_all_due or is_new_share or now_ns >= self._memory_due_ns:
            self._reserved_bytes = reserved_bytes
            before_bytes = latest.used_bytes
            self._read_memory()
            if before_bytes not in (UNKNOWN, latest.used_bytes) and not is_new_share:
                self._moves_until_ns = now_ns + MOVING_NS
            is_moving = now_ns < self._moves_until_ns
            self._memory_due_ns = now_ns + (MOVING_INTERVAL_NS if is_moving else INTERVAL_NS)
            if is_all_due or self._is_listing_stale():
                self._read_processes()
        if is_all_due:
            self._due_ns = now_ns + INTERVAL_NS
            self._read_load()
            self._read_power()
            self._read_heat()
        return copy(latest)

    def read_memory(self) -> DeviceMemory:
        """Memory alone, read now."""
        if self._handle is not None:
            self._read_memory()
        return copy(self._latest)

    def _is_listing_stale(self) -> bool:
        """Whether the list of processes is of another moment than the device's memory.

        What a process holds outside of PyTorch, and what no process holds, are differences.
        """
        is_of_now = self._listing.reserved_bytes == self._reserved_bytes
        return not is_of_now or self._listed_used_bytes != self._latest.used_bytes

    def _read_memory(self) -> None:
        memory, latest = self._memory_info(), self._latest
        latest.total_bytes = UNKNOWN if memory is None else int(memory.total)
        latest.used_bytes = UNKNOWN if memory is None else int(memory.used)
        latest.free_bytes = UNKNOWN if memory is None else int(memory.free)

    def _memory_info(self) -> Any:
        """What the driver says of the device's memory, ``None`` if it has none of its own."""
        memory = self._asked_memory()
        # Some drivers say "success" with 0 of 0 where GPU and CPU share their memory.
        return None if memory is None or not 0 < memory.total < _NOT_AVAILABLE else memory

    def _asked_memory(self) -> Any:
        """Version 2 counts what the driver keeps for itself apart from what is used."""
        ask = self._library.ask
        if self._memory_version is not None:
            memory = ask("nvmlDeviceGetMemoryInfo", self._handle, version=self._memory_version)
            if memory is not None:
                self._reads_v2 = True
                return memory
            if self._reads_v2:
                return None  # it worked before: a passing failure
            self._memory_version = None
        return ask("nvmlDeviceGetMemoryInfo", self._handle)

    def _read_load(self) -> None:
        rates = self._library.ask("nvmlDeviceGetUtilizationRates", self._handle)
        self._latest.utilization_percent = UNKNOWN if rates is None else int(rates.gpu)

    def _read_power(self) -> None:
        power_mw = self._library.ask("nvmlDeviceGetPowerUsage", self._handle)
        self._latest.power_mw = UNKNOWN if power_mw is None else int(power_mw)

    def _read_heat(self) -> None:
        sensor = self._library.constant("NVML_TEMPERATURE_GPU")
        heat_c = self._library.ask("nvmlDeviceGetTemperature", self._handle, sensor)
        self._latest.temperature_c = UNKNOWN if heat_c is None else int(heat_c)

    def _read_processes(self) -> None:
        processes = self._library.ask("nvmlDeviceGetComputeRunningProcesses", self._handle)
        own, other = UNKNOWN, UNKNOWN
        listed: list[tuple[int, int | None]] | None = None
        if processes is not None:
            pid = os.getpid()
            own_parts = [each.usedGpuMemory for each in processes if each.pid == pid]
            if _sees_every_process():
                own = _sum(own_parts)
                other = _sum([each.usedGpuMemory for each in processes if each.pid != pid])
                listed = [(each.pid, _known(each.usedGpuMemory)) for each in processes]
            elif own_parts:
                # In a container the list may miss the others. What is used and not ours is
                # theirs; version 1 of the memory call counts the driver's own share as used.
                own = _sum(own_parts)
                used = self._latest.used_bytes
                if self._reads_v2 and UNKNOWN not in (own, used):
                    other = max(0, used - own)
        if own != UNKNOWN and own < self._reserved_bytes:
            # Less than PyTorch alone holds: those pids are not this namespace's.
            own = other = UNKNOWN
            listed = None
        self._listing = ProcessListing(
            own, self._reserved_bytes, None if listed is None else tuple(listed)
        )
        self._listed_used_bytes = self._latest.used_bytes
        self._latest.process_bytes = own
        self._latest.other_bytes = other

    def _find(self, index: int, uuid: str | None) -> Handle:
        find = self._library.find
        if uuid:
            for prefix in ("", "GPU-", "MIG-"):
                handle = find("nvmlDeviceGetHandleByUUID", prefix + uuid)
                if handle is not None:
                    return self._used_part(handle)
        handle = self._by_index(index)
        # A card of another UUID is another card. Only a slice may be told by its card's.
        is_slice = _text(find("nvmlDeviceGetUUID", handle)).startswith("MIG-") if uuid else True
        return handle if is_slice else None

    def _by_index(self, index: int) -> Handle:
        find = self._library.find
        count = find("nvmlDeviceGetCount") or 0
        handles = [find("nvmlDeviceGetHandleByIndex", position) for position in range(count)]
        uuids = ["" if each is None else _text(find("nvmlDeviceGetUUID", each)) for each in handles]
        visible = visible_devices(self._environ.get("CUDA_VISIBLE_DEVICES"), uuids)
        if index >= len(visible):
            return None
        device = visible[index]
        if device.position is not None:
            return self._used_part(handles[device.position])
        return find("nvmlDeviceGetHandleByUUID", device.uuid)

    def _used_part(self, handle: Handle) -> Handle:
        """On a device split by MIG, CUDA uses one slice: the first unless one is named."""
        find = self._library.find
        mode = None if handle is None else find("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != 1:
            return handle
        for position in range(find("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            part = find("nvmlDeviceGetMigDeviceHandleByIndex", handle, position)
            if part is not None:
                return part
        return None  # the whole device's numbers are not those of the slice


def _known(size_bytes: int | None) -> int | None:
    return None if size_bytes is None or size_bytes >= _NOT_AVAILABLE else size_bytes


def _sum(parts: list[int | None]) -> int:
    """Total of the parts; unknown as soon as one part is."""
    total = 0
    for part in map(_known, parts):
        if part is None:
            return UNKNOWN
        total += part
    return total


def _sees_every_process() -> bool:
    """Whether pids here are the driver's pids: only outside of containers."""
    try:
        return os.readlink("/proc/self/ns/pid") == _INITIAL_PID_NAMESPACE
    except OSError:
        return False


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else ""
