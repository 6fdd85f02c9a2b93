"""Peaks of intervals without resetting anything: known only where the counters have risen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vramscope.patch import Patch
from vramscope.peaks.interval_peaks import IntervalPeaks
from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_layout import PeakLayout
from vramscope.peaks.torch_functions import (
    READ,
    RESET,
    RESET_ANY,
    RESET_TOTALS,
    RESET_TOTALS_ANY,
)
from vramscope.peaks.user_peaks import Stats, total_bytes_of
from vramscope_protocol.columns import UNKNOWN


class PassivePeaks:
    """Reads the counters of a CUDA device, and notes when the job resets them.

    Args:
        read: reads the counters, ``None`` if there are none now.
        index: which device that is at this moment.
    """

    def __init__(self, read: Callable[[], Stats | None], index: Callable[[], int]) -> None:
        self._read = read
        self._index = index
        self._interval = IntervalPeaks()
        self._layout: PeakLayout | None = None
        self._reset_total_bytes = 0
        self._patches: list[Patch] | None = None

    def watch(self, c_module: Any) -> None:
        """Notice what the job resets from now on. A second call does nothing."""
        if self._patches is not None:
            return
        self._patches = [
            Patch(c_module, name, before, _nothing, "peaks")
            for name, before in (
                (RESET, self._before_reset),
                (RESET_ANY, self._before_reset),
                (RESET_TOTALS, self._before_reset_of_totals),
                (RESET_TOTALS_ANY, self._before_reset_of_totals),
            )
            if hasattr(c_module, name) and hasattr(c_module, READ)
        ]
        for patch in self._patches:
            patch.install()

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        for patch in self._patches or ():
            patch.remove()
        self._patches = None
        self._interval = IntervalPeaks()

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on."""
        for patch in self._patches or ():
            patch.forget_after_fork()

    def begin_anew(self) -> None:
        """It is another device from now on."""
        self._interval = IntervalPeaks()

    def take(self) -> Interval:
        """End an interval."""
        stats = self._look(is_reset=False)
        if stats is None:
            self._interval.take()
            return Interval(None)
        total_bytes = total_bytes_of(stats)
        if total_bytes != UNKNOWN:
            total_bytes += self._reset_total_bytes
        return Interval(stats, self._interval.take(), total_bytes)

    def _look(self, *, is_reset: bool) -> Stats | None:
        stats = self._read()
        if stats is None:
            self._interval.missed()
            return None
        if self._layout is None:
            self._layout = PeakLayout(stats)
        self._interval.saw(self._layout.four(self._layout.read(stats)), is_reset=is_reset)
        return stats

    def _before_reset(self, index: Any) -> None:
        if index == self._index():
            self._look(is_reset=True)

    def _before_reset_of_totals(self, index: Any) -> None:
        stats = self._read() if index == self._index() else None
        total_bytes = UNKNOWN if stats is None else total_bytes_of(stats)
        if total_bytes != UNKNOWN:
            self._reset_total_bytes += total_bytes


def _nothing(first: Any, raised: BaseException | None) -> None:
    del first, raised
