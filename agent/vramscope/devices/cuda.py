"""The CUDA device of this process, through the job's own PyTorch.

vramscope never imports torch and never initialises CUDA: until the job has done both there are
no counters. On the agent's threads only ``torch._C._cuda_memoryStats`` is called, which makes no
call into the CUDA runtime; what may touch CUDA runs on the training thread. Everything of
PyTorch's that is not the same in 2.4 to 2.14 is looked up by name.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from vramscope.collectors.driver import DriverMonitor
from vramscope.devices.caching_allocator import (
    Stats,
    current_bytes,
    device_in_use,
    initialised_cuda,
    large_page_bytes,
    read_snapshot,
    read_stats,
    snapshot_obstacle,
)
from vramscope.devices.device import DeviceMemory
from vramscope.devices.torch_scopes import TorchScopes
from vramscope.notices import Notices
from vramscope_protocol.messages import DeviceInfo

_SMALL_PAGE_BYTES: Final = 2 << 20
CUSTOM_ALLOCATOR: Final = "a pool allocates through Python code"
_MOVED_AFTER_STEPS: Final = 8
"""A job that ended this many steps in a row on another device has moved there."""


class CudaDevice:
    """The device that the training thread uses. Implements ``Device``.

    Args:
        nvml: reads the driver's side.
        notices: told what is unknown and why.
        local_rank: which visible device to expect before the job says so.
        on_change: told when the job turns out to use another device than expected, or CUDA tells
            more about it. Called on the thread that reads ``device_memory``.
    """

    def __init__(
        self,
        nvml: DriverMonitor,
        notices: Notices,
        *,
        local_rank: int = 0,
        on_change: Callable[[DeviceInfo], None] | None = None,
    ) -> None:
        self._nvml = nvml
        self._notices = notices
        self._on_change = on_change
        self._scopes = TorchScopes()
        self._index = local_rank
        self._uuid: str | None = None
        self._told = DeviceInfo(index=local_rank, name="")
        self._selected: tuple[int, str | None] | None = None
        self._follows_job = False
        self._steps_elsewhere = 0
        self._limit_fraction = 1.0
        self._has_counters = True
        self._reserved_bytes = 0
        self._c_module: Any = None
        self._has_news = True
        """Whether CUDA has told more of the device than was passed on."""
        # What CUDA says of the device, for where the driver says nothing.
        self._cuda_name = ""
        self._cuda_total_bytes: int | None = None

    @property
    def info(self) -> DeviceInfo:
        """Name, UUID and size as far as they are known now."""
        return self._told

    @property
    def index(self) -> int:
        """CUDA's number of the device."""
        return self._index

    @property
    def has_counters(self) -> bool:
        """Whether the allocator has counters, as far as it was asked."""
        return self._has_counters

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._scopes.remove()

    def memory_stats(self) -> Stats | None:
        """Nested counters, ``None`` while the job has no CUDA or they must not be read here."""
        self._scopes.install()
        c_module = initialised_cuda()
        if c_module is None:
            return None
        if not self._has_counters:
            return None
        if self._scopes.has_custom_allocator and self._must_not_read():
            return None
        stats = read_stats(c_module, self._index)
        if not self._follows_job and current_bytes(stats, "reserved_bytes") == 0:
            self._index, stats = device_in_use(c_module, self._index, stats)
        if stats is None:
            # Not asked again: an exception from C++ costs far more than the counters.
            self._has_counters = False
            self._notices.note(
                "no_counters",
                "this allocator has no counters; only the driver's numbers are known",
            )
            return None
        self._reserved_bytes = current_bytes(stats, "reserved_bytes")
        return stats

    def device_memory(self) -> DeviceMemory:
        """What the driver counts, for every process."""
        self.refresh_info()
        return self._nvml.read(self._reserved_bytes)

    def refresh_info(self) -> None:
        """Point NVML at the device that the job uses, and tell when that is news."""
        wanted = (self._index, self._uuid)
        is_known = wanted == self._selected and not self._has_news
        if is_known and self._nvml.uuid == self._told.uuid:
            return
        self._has_news = False
        if wanted != self._selected:
            self._selected = wanted
            if not self._nvml.select(*wanted) and not self._follows_job and self._index > 0:
                # The launcher shows each rank its own device only: it is device 0 there.
                self._index = 0
                self._selected = (0, None)
                self._nvml.select(0)
        nvml = self._nvml
        total_bytes = self._cuda_total_bytes if nvml.total_bytes is None else nvml.total_bytes
        limit_bytes = None
        if self._limit_fraction < 1.0 and total_bytes is not None:
            limit_bytes = int(total_bytes * self._limit_fraction)
        name = nvml.name or self._cuda_name
        info = DeviceInfo(self._index, name, nvml.uuid, total_bytes, limit_bytes)
        if info != self._told:
            self._told = info
            if self._on_change is not None:
                self._on_change(info)

    def follow_current_device(self) -> None:
        """Learn from the training thread which device is its own; at a step boundary only."""
        # Once it is up it stays so: what asks is of no use to a step end.
        c_module = self._c_module or initialised_cuda()
        if c_module is None:
            return
        index: int = c_module._cuda_getDevice()
        if self._follows_job:
            if index == self._index:
                self._steps_elsewhere = 0
                return
            # Threads that train on a device each end their steps by turns: one of them is shown.
            self._steps_elsewhere += 1
            if self._steps_elsewhere < _MOVED_AFTER_STEPS:
                return
        if self.busy_reason() is not None:
            return
        self._index = index
        self._steps_elsewhere = 0
        self._follows_job = self._has_counters = True
        self._c_module = c_module
        torch: Any = sys.modules["torch"]
        self._take_properties(torch.cuda.get_device_properties(index))
        fraction = getattr(c_module, "_cuda_getMemoryFraction", None)  # 2.6 and newer
        self._limit_fraction = 1.0 if fraction is None else float(fraction(index))
        self._has_news = True
        if torch.cuda.get_allocator_backend() != "native":
            self._notices.note(
                "backend",
                "the allocator backend is not PyTorch's own: most of its counters stay 0",
            )

    def _take_properties(self, properties: Any) -> None:
        uuid = getattr(properties, "uuid", None)
        self._uuid = None if uuid is None else str(uuid)
        self._cuda_name = str(getattr(properties, "name", ""))
        self._cuda_total_bytes = getattr(properties, "total_memory", None)
        self._has_news = True
        if getattr(properties, "is_integrated", False):
            self._notices.note(
                "unified",
                "this device shares its memory with the processor: what other programs take of it "
                "is not known",
            )

    def busy_reason(self) -> str | None:
        """Why CUDA must not be touched now, on the training thread."""
        torch: Any = sys.modules.get("torch")
        c_module = initialised_cuda()
        if torch is None:
            return None
        if c_module is not None and c_module._cuda_isCurrentStreamCapturing():
            return "a CUDA graph is being captured"
        return self._scopes.open_scope() or autograd_reason(torch)

    def reason_never_to_reset(self) -> str | None:
        """Why the peaks of this job must not be reset at all."""
        return CUSTOM_ALLOCATOR if self._scopes.has_custom_allocator else None

    def reason_not_to_reset(self, c_module: Any, in_backward: bool = False) -> str | None:
        """Why the peaks must not be reset now, on the training thread or in a backward pass."""
        if not self._follows_job:
            return "which device trains is not known yet"
        if c_module._cuda_getDevice() != self._index:
            return "the job trains on several devices"
        scopes = self._scopes
        if c_module._cuda_isCurrentStreamCapturing() or (scopes.is_open and scopes.is_capturing()):
            return "a CUDA graph is being captured"
        if scopes.has_custom_allocator:
            return CUSTOM_ALLOCATOR
        return None if in_backward else autograd_reason(sys.modules["torch"])

    def may_read_counters(self) -> bool:
        """Whether the allocator's counters may be asked for on this thread."""
        return self._has_counters and not self._must_not_read()

    def segments(self) -> list[dict[str, Any]]:
        """Segments of this device, all pools; expandable ones with their ``page_bytes``."""
        c_module = initialised_cuda()
        if c_module is None:
            return []
        snapshot = read_snapshot(c_module)
        page_bytes = large_page_bytes(snapshot.get("allocator_settings", {}))
        segments = [each for each in snapshot["segments"] if each["device"] == self._index]
        for segment in segments:
            if segment.get("is_expandable"):
                small = segment.get("segment_type") == "small"
                segment["page_bytes"] = _SMALL_PAGE_BYTES if small else page_bytes
        return segments

    def why_no_segments(self) -> str | None:
        """Why the segments are not looked at now, in words."""
        self._scopes.install()
        c_module = initialised_cuda()
        if c_module is None:
            return "the job has not used the device yet"
        if self._scopes.has_custom_allocator:
            return "a pool allocates through Python code, which a look from outside could stop"
        return snapshot_obstacle(c_module)

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage, ``None`` if it does not lie on this device."""
        return storage_on(tensor, self._index)

    def empty_cache(self) -> None:
        """Give unused segments of every device of this process back."""
        if initialised_cuda() is not None:
            sys.modules["torch"].cuda.empty_cache()

    def reset_peaks(self) -> None:
        """Set every peak counter of this device to its current value."""
        c_module = initialised_cuda()
        if c_module is not None:
            c_module._cuda_resetPeakMemoryStats(self._index)

    def memory_summary(self) -> str:
        """PyTorch's own summary. With an ``int`` device it reads the counters and no more."""
        if initialised_cuda() is None or not self._has_counters or self._must_not_read():
            return ""
        summary: str = sys.modules["torch"].cuda.memory_summary(self._index)
        return summary

    def _must_not_read(self) -> bool:
        if not self._scopes.has_custom_allocator or not _is_agent_thread():
            return False
        self._notices.note(
            "custom_allocator",
            "a pool allocates through Python code: its counters are read at step ends only",
        )
        return True

    def software(self) -> dict[str, str]:
        """Versions of what the job runs on, as far as they are known now."""
        torch: Any = sys.modules.get("torch")
        version: Any = getattr(torch, "version", None)
        found = {
            "torch": getattr(torch, "__version__", None),
            "cuda": getattr(version, "cuda", None),
            "hip": getattr(version, "hip", None),
            "driver": self._nvml.driver_version(),
        }
        return {name: str(value) for name, value in found.items() if value}


def storage_on(tensor: Any, index: int) -> tuple[int, int] | None:
    """Address and bytes of a tensor's storage, ``None`` if it does not lie on that device."""
    if not tensor.is_cuda or tensor.get_device() != index:
        return None
    # Of a lazily cloned tensor even the question for the address would make the copy.
    is_lazy_clone = getattr(sys.modules["torch"]._C, "_is_cow_tensor", None)
    if is_lazy_clone is not None and is_lazy_clone(tensor):
        return None
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def autograd_reason(torch: Any) -> str | None:
    """Why this thread is not between two operations of the job."""
    if torch._C._current_graph_task_id() != -1:
        return "the backward pass is running"
    if torch.compiler.is_compiling():
        return "torch.compile is tracing"
    return None


def _is_agent_thread() -> bool:
    return threading.current_thread().name.startswith("vramscope-")
