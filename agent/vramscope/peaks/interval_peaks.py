"""The highest values between two moments, as far as counters that are seldom reset tell. Pure.

A peak counter that was reset when the interval began is the interval's peak. One that was not is
only a bound, unless it has risen since: then the new value was reached within the interval.
"""

from __future__ import annotations

from typing import Final

from vramscope.peaks.peak_layout import UNKNOWN_PEAKS, FourPeaks
from vramscope_protocol.columns import UNKNOWN

_UNBOUNDED: Final = 2**63
_NOTHING: Final = list(UNKNOWN_PEAKS)
_NO_BOUND: Final[FourPeaks] = (_UNBOUNDED, _UNBOUNDED, _UNBOUNDED, _UNBOUNDED)


class IntervalPeaks:
    """Follows the peak counters from interval to interval; resets may come in between."""

    def __init__(self) -> None:
        self._known = list(UNKNOWN_PEAKS)
        self._bound = list(UNKNOWN_PEAKS)
        # Nothing is known of the time before the first look: whatever the counters say then may
        # be older than the interval.
        self._before: FourPeaks | None = _NO_BOUND

    def saw(self, peaks: FourPeaks, *, is_reset: bool) -> None:
        """The peak counters have these values now.

        Args:
            peaks: values, ``UNKNOWN`` where there is no such counter.
            is_reset: whether the counters are reset right after.
        """
        before = self._before
        if before is None:
            self._known = list(map(max, self._known, peaks))
        else:
            for at, peak in enumerate(peaks):
                told = self._known if before[at] < peak else self._bound
                told[at] = max(told[at], peak)
        self._before = None if is_reset else peaks

    def end(self, peaks: FourPeaks, *, is_reset: bool) -> FourPeaks:
        """The same at the end of an interval: its peaks.

        Args:
            peaks, is_reset: see :meth:`saw`.
        """
        if is_reset and self._before is None and self._known == self._bound == _NOTHING:
            return peaks  # reset when it began, and not seen since
        self.saw(peaks, is_reset=is_reset)
        return self.take()

    def missed(self) -> None:
        """The counters could not be read, and may have been reset meanwhile."""
        self._before = _NO_BOUND
        self._bound = list(_NO_BOUND)

    def take(self) -> FourPeaks:
        """Peaks of the interval that ends now, ``UNKNOWN`` where they are not known exactly."""
        one, two, three, four = self._known
        if self._bound != _NOTHING:
            one, two, three, four = (
                known if known >= bound else UNKNOWN
                for known, bound in zip(self._known, self._bound, strict=True)
            )
            self._bound = list(UNKNOWN_PEAKS)
        self._known = list(UNKNOWN_PEAKS)
        return one, two, three, four
