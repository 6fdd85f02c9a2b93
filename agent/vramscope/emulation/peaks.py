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
            return self._device.peaks.take(reset=True)
        thread = threading.get_ident()
        before, self._thread = self._thread, thread
        is_at_rest = before in (None, thread) and autograd_reason(torch) is None
        interval = None
        if is_at_rest or at_step_end:
            interval = self._device.peaks.take(reset=is_at_rest)
        if interval is None and at_step_end:
            interval = Interval(self._device.memory_stats())
        return interval

    def remove(self) -> None:
        """Nothing to put back: the device answers the job as long as it is there."""

    def forget_after_fork(self) -> None:
        """Nothing to forget: the emulation ends in a forked child."""
