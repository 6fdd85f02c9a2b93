"""Apple's devices. They count two numbers and no peaks, so the highest sample stands for a peak."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope.devices.cuda import autograd_reason
from vramscope.devices.device import DeviceMemory
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import DeviceInfo

_SAMPLED: Final = (
    "this device counts no peaks: those that are shown are the highest of the samples, so a step "
    "may have needed more"
)


class MpsDevice:
    """The one MPS device. Implements ``Device``.

    PyTorch cannot be asked whether the job uses it without setting it up. So it is used from the
    moment an optimizer steps parameters that lie on it.

    Args:
        notices: told what is unknown and why.
        on_change: told when the device is in use.
    """

    def __init__(
        self, notices: Notices, on_change: Callable[[DeviceInfo], None] | None = None
    ) -> None:
        self._notices = notices
        self._on_change = on_change
        self._info = DeviceInfo(0, "Apple GPU", backend="mps")
        self._is_up = False
        self._was_told = False
        self._peak_bytes = 0

    @property
    def info(self) -> DeviceInfo:
        """Name and recommended limit; the memory is that of the machine."""
        return self._info

    def saw_optimizer(self, optimizer: Any) -> None:
        """An optimizer has stepped, on the training thread."""
        if self._is_up:
            return
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.device.type == "mps":
                    self._come_up()
                return  # the first tells

    def is_up(self) -> bool:
        """Whether the job is known to use it."""
        return self._is_up

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Bytes in tensors, in the nested form of CUDA's counters; the rest is not counted."""
        allocated = self._number("_mps_currentAllocatedMemory")
        if allocated is None:
            return None
        self._peak_bytes = max(self._peak_bytes, allocated)
        return {"allocated_bytes": {"all": {"current": allocated, "peak": self._peak_bytes}}}

    def device_memory(self) -> DeviceMemory:
        """What Metal holds for this process; what others use is not known."""
        if self._is_up and not self._was_told:
            self._was_told = True
            if self._on_change is not None:
                self._on_change(self._info)
        held = self._number("_mps_driverAllocatedMemory")
        return DeviceMemory(process_bytes=UNKNOWN if held is None else held)

    def follow_current_device(self) -> None:
        """There is one."""

    def busy_reason(self) -> str | None:
        """Why the device must not be touched now, on the training thread."""
        return autograd_reason(sys.modules["torch"])

    def segments(self) -> list[dict[str, Any]]:
        """None are known."""
        return []

    def why_no_segments(self) -> str | None:
        """Always a reason."""
        return "PyTorch does not list the segments of MPS devices"

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage, ``None`` if it does not lie on this device."""
        if tensor.device.type != "mps":
            return None
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    def empty_cache(self) -> None:
        """Give unused memory back to Metal."""
        sys.modules["torch"].mps.empty_cache()

    def reset_peaks(self) -> None:
        """Let the sampled peak begin anew."""
        self._peak_bytes = self._number("_mps_currentAllocatedMemory") or 0

    def memory_summary(self) -> str:
        """The numbers that there are."""
        allocated = self._number("_mps_currentAllocatedMemory")
        held = self._number("_mps_driverAllocatedMemory")
        if allocated is None:
            return ""
        return f"allocated: {allocated} bytes\nheld by Metal for this process: {held} bytes"

    def _come_up(self) -> None:
        self._is_up = True
        limit = self._number("_mps_recommendedMaxMemory")  # 2.6 and newer
        self._info = DeviceInfo(0, "Apple GPU", limit_bytes=limit, backend="mps")
        self._notices.note("sampled_peaks", _SAMPLED)
        self._notices.note(
            "unified",
            "this device shares its memory with the processor: what other programs take of it "
            "is not known",
        )

    def _number(self, name: str) -> int | None:
        if not self._is_up:
            return None
        ask = getattr(sys.modules["torch"]._C, name, None)
        return None if ask is None else int(ask())
