"""The peak of a stretch of time in a phase, where its begin and its end can be marked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from vramscope.peaks.peak_meter import PeakAccount, PeakMeter
from vramscope_protocol.columns import UNKNOWN

_BURST_NS: Final = 5_000_000
"""What marking may cost ahead of its budget: some hundred marks."""


class StretchPeaks(NamedTuple):
    """What a stretch came to; ``None`` where it is not known."""

    peak_bytes: int | None = None
    volume_bytes: int | None = None


class PhasePeaks:
    """Marks where phases begin and end, on the training thread only and within a budget.

    Args:
        meter: marks.
        is_training_thread: whether the calling thread is the one that trains.
        budget: share of the time that marking may take.
        charge: told what a mark took, in nanoseconds.
        clock_ns: the time.
    """

    def __init__(
        self,
        meter: PeakMeter,
        is_training_thread: Callable[[], bool],
        budget: float,
        charge: Callable[[int], None],
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._meter = meter
        self._is_training_thread = is_training_thread
        self._budget = budget
        self._charge = charge
        self._clock_ns = clock_ns
        self._credit_ns = float(_BURST_NS)
        self._credited_ns = clock_ns()

    def begin(self) -> PeakAccount | None:
        """A phase begins; ``None`` if its peak will not be known."""
        if not self._is_training_thread() or not self._may_mark() or not self._mark():
            return None
        return self._meter.open()

    def end(self, account: PeakAccount) -> StretchPeaks:
        """It is over."""
        # Begun with a mark, so this one is paid for too.
        is_marked = self._is_training_thread() and self._mark()
        self._meter.close(account)
        if not is_marked:
            return StretchPeaks()
        return StretchPeaks(_known(account.allocated_peak_bytes), _known(account.volume_bytes))

    def _mark(self) -> bool:
        begin_ns = self._clock_ns()
        is_marked = self._meter.mark() is not None
        took_ns = self._clock_ns() - begin_ns
        self._credit_ns -= took_ns
        self._charge(took_ns)
        return is_marked

    def _may_mark(self) -> bool:
        now_ns = self._clock_ns()
        earned_ns = (now_ns - self._credited_ns) * self._budget
        self._credited_ns = now_ns
        self._credit_ns = min(self._credit_ns + earned_ns, float(_BURST_NS))
        return self._credit_ns > 0


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
