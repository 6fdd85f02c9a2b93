"""What the steps ask of the counters of a device: those of an interval, exactly where possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from vramscope.peaks.peak_layout import UNKNOWN_PEAKS, FourPeaks
from vramscope_protocol.columns import UNKNOWN


class Interval(Struct, frozen=True):
    """The counters at the end of an interval, which is where the next one begins."""

    stats: Mapping[str, Any] | None
    """Nested counters as the job sees them, ``None`` if there are none."""
    peaks: FourPeaks = UNKNOWN_PEAKS
    """Highest values within the interval, exact or ``UNKNOWN``."""
    allocated_total_bytes: int = UNKNOWN
    """Bytes allocated since some fixed moment; what the job resets does not show in it."""
    begins_anew: bool = False
    """The interval before was one of another device: these totals do not go on from its own."""


class PeakCounters(Protocol):
    """The counters of the device that the training thread uses."""

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Interval | None:
        """End an interval and begin the next; on the training thread.

        Args:
            at_step_end: within a step the counters are left alone, and the answer is ``None``,
                unless the device is at rest and the peaks are exact.
            in_backward: a hook of autograd asks, on the thread that computes the gradient: it is
                the one that allocates, while the training thread waits for it.
        """
        ...

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        ...

    def forget_after_fork(self) -> None:
        """In a forked child: be idle from now on, without taking a lock."""
        ...
