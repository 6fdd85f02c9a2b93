"""The peaks of the emulated device, exact as on a real one."""

from __future__ import annotations

import threading

import torch

from vramscope.devices.cuda import autograd_reason
from vramscope.emulation.device import EmulatedDevice
from vramscope.peaks.peak_counters import Interval


class EmulatedPeaks:
    """Implements ``PeakCounters``.

    Args:
        device: the emulated device.
    """

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._thread: int | None = None

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Interval | None:
        """End an interval and begin the next; on the training thread."""
        if in_backward:
            return self._device.peaks.take(at_step_end=False)
        thread = threading.get_ident()
        before, self._thread = self._thread, thread
        is_at_rest = before in (None, thread) and autograd_reason(torch) is None
        if not is_at_rest and not at_step_end:
            return None
        return self._device.peaks.take(reset=is_at_rest, at_step_end=at_step_end)

    def remove(self) -> None:
        """Nothing to put back: the device answers the job as long as it is there."""

    def forget_after_fork(self) -> None:
        """Nothing to forget: the emulation ends in a forked child."""
