"""The way to change PyTorch's caching allocator while the job runs, on a device or an emulated one.

All of it touches the allocator: on the training thread at a step boundary only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from vramscope.devices.caching_allocator import initialised_cuda, read_snapshot, snapshot_obstacle
from vramscope.devices.device import Device

SETTERS: Final = (
    "_accelerator_setAllocatorSettings",
    "_cuda_cudaCachingAllocator_set_allocator_settings",
)
"""Of ``torch._C``: from 2.10 on, and up to 2.9."""
GETTER: Final = "_accelerator_getAllocatorSettings"
"""From 2.12 on."""
_NEWEST: Final = (2, 10)


class AllocatorControl(Protocol):
    """One allocator's settings and cap."""

    @property
    def release(self) -> tuple[int, int]:
        """The release of torch whose rules hold."""
        ...

    def why_not(self) -> str | None:
        """Why there is nothing to set, in words."""
        ...

    def reported(self) -> Mapping[str, Any]:
        """The settings as a snapshot has them (``allocator_settings``); empty if not to be had."""
        ...

    def send(self, text: str) -> None:
        """Set what a text says, as PyTorch understands it; raises what PyTorch raises."""
        ...

    def fraction(self) -> float | None:
        """The part of the device that the process may hold; ``None`` if it cannot be asked."""
        ...

    def set_fraction(self, fraction: float) -> None:
        """Cap what the process may hold."""
        ...


def allocator_control(device: Device) -> AllocatorControl:
    """What a device's allocator is set through."""
    emulated = getattr(device, "allocator_control", None)
    if emulated is not None:
        control: AllocatorControl = emulated()
        return control
    return TorchAllocatorControl(lambda: device.info.index)


class TorchAllocatorControl:
    """CUDA's allocator of the job's own torch. Implements ``AllocatorControl``.

    Args:
        index: CUDA's number of the device.
    """

    def __init__(self, index: Callable[[], int]) -> None:
        self._index = index

    @property
    def release(self) -> tuple[int, int]:
        """The release of the job's torch."""
        return torch_release()

    def why_not(self) -> str | None:
        """Why there is nothing to set, in words."""
        c_module = initialised_cuda()
        if c_module is None:
            return "this job has not used CUDA, so there is no allocator of CUDA to set"
        backend = sys.modules["torch"].cuda.get_allocator_backend()
        if backend != "native":
            return f"the allocator of this job ({backend}) is not PyTorch's own"
        if self._setter(c_module) is None:
            return "this torch has no function to set its allocator while it runs"
        return None

    def reported(self) -> Mapping[str, Any]:
        """The settings as a snapshot has them; empty where one would cost too much."""
        c_module = initialised_cuda()
        if c_module is None or snapshot_obstacle(c_module) is not None:
            return {}
        settings: Mapping[str, Any] = read_snapshot(c_module).get("allocator_settings", {})
        return settings

    def send(self, text: str) -> None:
        """Set what a text says."""
        setter = self._setter(initialised_cuda())
        if setter is not None:
            setter(text)

    def fraction(self) -> float | None:
        """Asked from 2.6 on."""
        getter = getattr(initialised_cuda(), "_cuda_getMemoryFraction", None)
        return None if getter is None else float(getter(self._index()))

    def set_fraction(self, fraction: float) -> None:
        """Cap what the process may hold."""
        sys.modules["torch"].cuda.set_per_process_memory_fraction(fraction, self._index())

    def _setter(self, c_module: Any) -> Callable[[str], object] | None:
        # Looked up at each call: whoever follows the settings may have wrapped it.
        found = (getattr(c_module, name, None) for name in SETTERS)
        return next((setter for setter in found if setter is not None), None)


def torch_release() -> tuple[int, int]:
    """The release of the torch that the job has imported."""
    version = str(getattr(sys.modules.get("torch"), "__version__", ""))
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else _NEWEST
