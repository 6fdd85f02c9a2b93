"""Devices of other makers whose allocator counts as CUDA's does: XPU, MTIA, and what
``torch.accelerator`` knows.

Everything is found by name in the job's own PyTorch; what it does not have is unknown. Nothing here
sets a backend up: a backend is used from the moment the job has done that itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vramscope.collectors.allocator import flatten
from vramscope.devices.cuda import autograd_reason
from vramscope.devices.device import DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo

Stats = Mapping[str, Any]


class Backend(NamedTuple):
    """One kind of device, and what PyTorch calls its functions in ``torch._C``."""

    name: str
    """As in ``torch.device("xpu:0")``."""
    stats: tuple[str, ...]
    reset_peaks: tuple[str, ...]
    current: tuple[str, ...]


XPU = Backend(
    "xpu",
    ("_xpu_memoryStats", "_accelerator_getDeviceStats"),
    ("_xpu_resetPeakMemoryStats", "_accelerator_resetPeakStats"),
    ("_xpu_getDevice", "_accelerator_getDeviceIndex"),
)
MTIA = Backend(
    "mtia",
    ("_mtia_memoryStats", "_accelerator_getDeviceStats"),
    ("_mtia_resetPeakMemoryStats", "_accelerator_resetPeakStats"),
    ("_mtia_getDevice", "_accelerator_getDeviceIndex"),
)
OTHER = Backend(
    "",
    ("_accelerator_getDeviceStats",),
    ("_accelerator_resetPeakStats",),
    ("_accelerator_getDeviceIndex",),
)
"""Whatever ``torch.accelerator`` names, 2.9 and newer."""

_NO_OTHERS = ("privateuseone", "cuda", "mps", "cpu")


class AcceleratorDevice:
    """The device of such a backend that the training thread uses. Implements ``Device``.

    Args:
        backend: its kind.
        notices: told what is unknown and why.
        local_rank: which device to expect before the job says so.
        on_change: told when more is known about the device.
    """

    def __init__(
        self,
        backend: Backend,
        notices: Notices,
        *,
        local_rank: int = 0,
        on_change: Callable[[DeviceInfo], None] | None = None,
    ) -> None:
        self._backend = backend
        self._notices = notices
        self._on_change = on_change
        self._info = DeviceInfo(local_rank, "", backend=backend.name)
        self._told = self._info
        self._follows_job = False
        self._has_counters = True

    @property
    def info(self) -> DeviceInfo:
        """Name, UUID and size as far as they are known now."""
        return self._info

    def is_up(self) -> bool:
        """Whether the job has set this backend up. Imports and initialises nothing."""
        torch: Any = sys.modules.get("torch")
        c_module = getattr(torch, "_C", None)
        if c_module is None:
            return False
        if not self._backend.name:
            return self._is_other_up(c_module)
        is_initialized = getattr(getattr(torch, self._backend.name, None), "is_initialized", None)
        return is_initialized is not None and bool(is_initialized())

    def memory_stats(self) -> Stats | None:
        """Nested counters, ``None`` where there are none."""
        ask = self._function(self._backend.stats) if self._has_counters else None
        try:
            stats: Stats | None = None if ask is None else ask(self._info.index)
        except RuntimeError:
            stats = None
        if stats is None and self._has_counters:
            # Not asked again: an exception from C++ costs far more than the counters.
            self._has_counters = False
            self._notices.note("no_counters", "this PyTorch has no counters for this device")
        return stats

    def device_memory(self) -> DeviceMemory:
        """Its size, once that is known; what other processes use is not."""
        if self._info != self._told:
            self._told = self._info
            if self._on_change is not None:
                self._on_change(self._info)
        total_bytes = self._info.total_bytes
        return DeviceMemory(total_bytes=UNKNOWN if total_bytes is None else total_bytes)

    def follow_current_device(self) -> None:
        """Learn from the training thread which device is its own; at a step boundary only."""
        current = self._function(self._backend.current)
        if self._follows_job or current is None or self.busy_reason() is not None:
            return
        self._follows_job = self._has_counters = True
        index = int(current())
        module = getattr(sys.modules["torch"], self._backend.name, None)
        properties_of = getattr(module, "get_device_properties", None)
        properties = None if properties_of is None else properties_of(index)
        self._info = DeviceInfo(
            index,
            str(getattr(properties, "name", self._backend.name)),
            str(getattr(properties, "uuid", "")),
            getattr(properties, "total_memory", None),
            backend=self._backend.name,
        )

    def busy_reason(self) -> str | None:
        """Why the device must not be touched now, on the training thread."""
        torch: Any = sys.modules["torch"]
        is_capturing = getattr(torch._C, f"_{self._backend.name}_isCurrentStreamCapturing", None)
        if callable(is_capturing) and not isinstance(is_capturing, type) and is_capturing():
            return "a graph is being captured"
        return autograd_reason(torch)

    def segments(self) -> list[dict[str, Any]]:
        """None are known."""
        return []

    def why_no_segments(self) -> str | None:
        """Always a reason: other backends list them in forms of their own, or not at all."""
        return f"segments of {self._backend.name} devices are not read"

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage, ``None`` if it does not lie on this device."""
        if tensor.device.type != self._backend.name or tensor.device.index != self._info.index:
            return None
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    def empty_cache(self) -> None:
        """Give unused segments back to the device."""
        torch: Any = sys.modules["torch"]
        module = getattr(torch, self._backend.name, None)
        empty = getattr(module, "empty_cache", None) or torch._C._accelerator_emptyCache
        empty()

    def reset_peaks(self) -> None:
        """Set every peak counter of this device to its current value."""
        reset = self._function(self._backend.reset_peaks)
        if reset is not None:
            reset(self._info.index)

    def memory_summary(self) -> str:
        """The counters, one a line: PyTorch has no summary for this backend in every release."""
        stats = self.memory_stats()
        return "" if stats is None else "\n".join(f"{k}: {v}" for k, v in flatten(stats).items())

    def _is_other_up(self, c_module: Any) -> bool:
        """Also learns the name of the backend, which registers itself with PyTorch."""
        # Not by _accelerator_getAccelerator: a build with CUDA counts its devices for the answer,
        # which starts the driver.
        name_of = getattr(c_module, "_get_privateuse1_backend_name", None)
        is_up = getattr(c_module, "_accelerator_isAllocatorInitialized", None)
        if name_of is None or is_up is None:
            return False
        name = str(name_of())
        if name in (*_NO_OTHERS, XPU.name, MTIA.name) or not is_up():
            return False
        self._backend = self._backend._replace(name=name)
        self._info = self._told = DeviceInfo(self._info.index, name, backend=name)
        return True

    def _function(self, names: tuple[str, ...]) -> Callable[..., Any] | None:
        """The first of these that this PyTorch has; builds without the backend have dummies."""
        c_module = getattr(sys.modules.get("torch"), "_C", None)
        for name in names:
            function = getattr(c_module, name, None)
            if function is not None and not isinstance(function, type):
                return function  # type: ignore[no-any-return]  # of a module without types
        return None
