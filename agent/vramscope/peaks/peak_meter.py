"""Adds up the intervals between marks: for the step, for its parts and for phases at once."""

from __future__ import annotations

import threading

from msgspec import Struct

from vramscope.peaks.peak_counters import Interval, PeakCounters
from vramscope.peaks.peak_layout import FourPeaks
from vramscope_protocol.columns import UNKNOWN


class PeakAccount(Struct, eq=False):
    """Highest values and allocated bytes of some intervals. Unknown once one of them is."""

    peaks: FourPeaks | None = None
    volume_bytes: int = 0

    def add(self, peaks: FourPeaks, volume_bytes: int) -> None:
        """Add an interval."""
        before = self.peaks
        if before is None:  # the first: nearly always the only one
            self.peaks, self.volume_bytes = peaks, volume_bytes
            return
        if before != peaks:
            one, two, three, four = (
                UNKNOWN if UNKNOWN in pair else max(pair)
                for pair in zip(before, peaks, strict=True)
            )
            self.peaks = (one, two, three, four)
        if UNKNOWN in (volume_bytes, self.volume_bytes):
            self.volume_bytes = UNKNOWN
        else:
            self.volume_bytes += volume_bytes

    @property
    def allocated_peak_bytes(self) -> int:
        """The peak of ``allocated_bytes``."""
        return UNKNOWN if self.peaks is None else self.peaks[0]


class PeakMeter:
    """Marks moments on the training thread, and keeps the accounts that are open.

    Args:
        counters: of the device.
    """

    def __init__(self, counters: PeakCounters) -> None:
        self._counters = counters
        self._open: list[PeakAccount] = []
        self._total_bytes = UNKNOWN
        # Taken without waiting: garbage collection may end a phase in the middle of a mark.
        self._marking = threading.Lock()

    def open(self) -> PeakAccount:
        """An account of what comes after the last mark."""
        account = PeakAccount()
        self._open.append(account)
        return account

    def close(self, account: PeakAccount) -> None:
        """Add nothing more to an account. Any thread."""
        if account in self._open:
            self._open.remove(account)

    def mark(self, *, at_step_end: bool = False, in_backward: bool = False) -> Interval | None:
        """End an interval and begin the next.

        Args:
            at_step_end: a step ends here.
            in_backward: called by a hook of autograd, on the thread that computes the gradient.

        Returns:
            The interval; ``None`` where the counters must be left alone, which never is the
            answer at the end of a step.
        """
        if not self._marking.acquire(blocking=False):
            return None
        try:
            interval = self._counters.take(at_step_end=at_step_end, in_backward=in_backward)
            if interval is not None:
                volume_bytes = self._volume_bytes(interval)
                # A copy: garbage collection may end a phase in the middle.
                for account in self._open.copy():
                    account.add(interval.peaks, volume_bytes)
            return interval
        finally:
            self._marking.release()

    def _volume_bytes(self, interval: Interval) -> int:
        before_bytes, self._total_bytes = self._total_bytes, interval.allocated_total_bytes
        volume_bytes = UNKNOWN
        if UNKNOWN not in (before_bytes, self._total_bytes) and not interval.begins_anew:
            volume_bytes = self._total_bytes - before_bytes
        if volume_bytes < 0:  # the totals were reset by somebody we do not see
            volume_bytes = UNKNOWN
        return volume_bytes
