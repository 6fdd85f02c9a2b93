"""The part of the agent that knows peaks: of steps, of their parts and of phases, wired."""

from __future__ import annotations

from collections.abc import Callable

from vramscope.devices.caching_allocator import current_bytes
from vramscope.peaks.peak_counters import PeakCounters
from vramscope.peaks.peak_meter import PeakMeter
from vramscope.peaks.phase_peaks import PhasePeaks
from vramscope.peaks.split_rate import SplitRate
from vramscope.peaks.step_parts import StepParts
from vramscope.peaks.step_peaks import StepPeaks
from vramscope_protocol.columns import UNKNOWN


class Peaks:
    """Takes peaks from the counters of one device.

    Args:
        counters: of the device.
        parts_budget: share of the step time that splitting steps into parts may add; 0: none is
            split, and phases have no peaks either.
        charge: told what was spent within steps, in nanoseconds.
    """

    def __init__(
        self, counters: PeakCounters, parts_budget: float, charge: Callable[[int], None]
    ) -> None:
        self._counters = counters
        self._budget = parts_budget
        self._charge = charge
        self._meter = PeakMeter(counters)
        parts = None
        if parts_budget > 0:
            parts = StepParts(self._meter, SplitRate(parts_budget), charge)
        self.steps = StepPeaks(self._meter, parts)

    def of_phases(self, is_training_thread: Callable[[], bool]) -> PhasePeaks | None:
        """The peaks of phases, ``None`` if they are not to be taken."""
        if self._budget <= 0:
            return None
        return PhasePeaks(self._meter, is_training_thread, self._budget, self._charge)

    def reading(self, *, in_backward: bool) -> tuple[int, int] | None:
        """Allocated bytes, and the highest since the last mark; ``None`` if not known exactly.

        Args:
            in_backward: called by a hook of autograd, on the thread that computes the gradient.
        """
        interval = self._meter.mark(in_backward=in_backward)
        if interval is None or interval.stats is None or interval.peaks[0] == UNKNOWN:
            return None
        return current_bytes(interval.stats, "allocated_bytes"), interval.peaks[0]

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._counters.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: be idle from now on, without taking a lock."""
        self._counters.forget_after_fork()
