"""Peaks of an allocator model, with a clock that the test moves."""

from __future__ import annotations

from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_meter import PeakMeter
from vramscope.peaks.user_peaks import UserPeaks
from vramscope_analysis.allocator import Block, CachingAllocator

MIB = 1 << 20


class ModelledPeaks:
    """Implements ``PeakCounters``; ``is_at_rest`` is the test's."""

    def __init__(self) -> None:
        self.model = CachingAllocator(1 << 30, version=(2, 11))
        self.user = UserPeaks(
            self.model.memory_stats, self.model.reset_peaks, self.model.reset_accumulated
        )
        self.meter = PeakMeter(self)
        self.is_at_rest = True
        self.takes = 0
        self.now_ns = 0
        self.take_ns = 0
        """What a mark takes."""
        self.charged_ns = 0

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Interval | None:
        del in_backward
        self.now_ns += self.take_ns
        if not self.is_at_rest and not at_step_end:
            return None
        self.takes += 1
        return self.user.take(reset=self.is_at_rest)

    def remove(self) -> None: ...

    def forget_after_fork(self) -> None: ...

    def clock_ns(self) -> int:
        return self.now_ns

    def charge(self, spent_ns: int) -> None:
        self.charged_ns += spent_ns

    def peak(self, mib: int, took_us: int = 0) -> None:
        """Allocate and free."""
        self.model.free(self.keep(mib, took_us))

    def keep(self, mib: int, took_us: int = 0) -> Block:
        """Allocate."""
        self.now_ns += took_us * 1000
        return self.model.malloc(mib * MIB)

    def allocated_peak(self) -> int:
        """The job's own."""
        return int(self.user.view()["allocated_bytes"]["all"]["peak"])
