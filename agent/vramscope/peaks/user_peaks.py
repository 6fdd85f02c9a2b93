"""The job's own view of the peaks of one device, while the agent resets the real ones.

There is one peak counter for everybody. The agent resets it at the end of each step, and keeps
what it has seen for the job: the job's peak is the higher of what was kept and the real one, and
its own resets clear what was kept. No reader needs a lock, so the thread that trains never waits
for the sampler: what a reader sees is the state before a change, or the one after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from vramscope.peaks.interval_peaks import IntervalPeaks
from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_layout import UNKNOWN_PEAKS, PeakLayout, Peaks, fold
from vramscope_protocol.columns import UNKNOWN

_ATTEMPTS: Final = 4

Stats = Mapping[str, Any]


class _Kept(Struct, frozen=True):
    resets: int
    """How often the job has reset its peaks."""
    peaks: Peaks | None = None
    latest: Stats | None = None
    """Counters whose peaks are kept too, and not folded in yet."""


class UserPeaks:
    """Takes the peaks of intervals without the job noticing.

    Args:
        read: reads the real counters into dictionaries that nobody else has.
        reset: resets the real peaks.
        reset_accumulated: resets the real totals, ``None`` if there is no such function.
    """

    def __init__(
        self,
        read: Callable[[], Stats],
        reset: Callable[[], object],
        reset_accumulated: Callable[[], object] | None = None,
    ) -> None:
        self._read = read
        self._reset = reset
        self._reset_accumulated = reset_accumulated
        self._layout: PeakLayout | None = None
        self._kept = _Kept(0)
        self._interval = IntervalPeaks()
        self._reset_total_bytes = 0
        self._is_behind = False
        # Held by who resets. Re-entrant: a finalizer of the job may reset in the middle of ours.
        self._resetting = threading.RLock()

    # ------------------------------------------------------------------- what the job does

    @property
    def resets(self) -> int:
        """How often the job has reset its peaks."""
        return self._kept.resets

    def view(self) -> Stats:
        """The counters as the job would see them without us. Any thread."""
        resets = self.resets
        return self.completed(self._read(), resets, self._read)

    def completed(
        self, stats: Stats, resets: int, read: Callable[[], Stats], *, by_name: bool = False
    ) -> Stats:
        """Counters with what is kept in them.

        Args:
            stats: real counters, which are changed in place.
            resets: :attr:`resets` before they were read.
            read: reads them again.
            by_name: they have another form, as those of ``torch.accelerator``.
        """
        # What is kept, after: an interval that ended meanwhile has put into it what it reset.
        kept = self._kept
        for _ in range(_ATTEMPTS):
            if kept.resets == resets:
                break
            resets = kept.resets
            stats = read()
            kept = self._kept
        floor = self._floor(kept)
        if floor is not None and by_name:
            if self._layout is not None:
                self._layout.raise_by_name(stats, floor)
        elif floor is not None:
            self._layout_of(stats).raise_to(stats, floor)
        return stats

    def reset(self) -> None:
        """The job resets its peaks."""
        with self._resetting:
            stats = self._read()
            layout = self._layout_of(stats)
            kept = self._kept
            # First: until the real ones are reset, and after, readers see what was before.
            self._kept = _Kept(kept.resets, self._floor(kept), stats)
            self._reset()
            self._kept = _Kept(kept.resets + 1)
            self._interval.saw(layout.four(layout.read(stats)), is_reset=True)

    def reset_accumulated(self) -> None:
        """The job sets its totals to 0."""
        with self._resetting:
            total_bytes = total_bytes_of(self._read())
            if self._reset_accumulated is not None:
                self._reset_accumulated()
            if total_bytes != UNKNOWN:
                self._reset_total_bytes += total_bytes

    def is_higher(self) -> bool:
        """Whether the job's peaks are higher than the real ones: something is kept in need."""
        floor = self._floor(self._kept)
        if floor is None:
            return False
        stats = self._read()
        real = self._layout_of(stats).read(stats)
        return fold(floor, real) != real

    # ----------------------------------------------------------------- what the agent does

    def take(self, *, reset: bool = True, at_step_end: bool = True) -> Interval | None:
        """End an interval; on the training thread.

        Args:
            reset: whether the real peaks may be reset. If not, the peaks of this interval and of
                the next are known only where the counters have moved.
            at_step_end: there has to be an answer.

        Returns:
            The interval. While another thread resets there is none within a step, and at its end
            one of which only the counters are known.
        """
        if not self._resetting.acquire(blocking=False):
            if not at_step_end:
                return None
            self._is_behind = True
            return Interval(self.view())
        try:
            return self._take(reset)
        finally:
            self._resetting.release()

    def _take(self, reset: bool) -> Interval:
        kept = self._kept
        floor = kept.peaks if kept.latest is None else self._floor(kept)
        stats = self._read()
        marked = _Kept(kept.resets, floor, stats)
        if self._kept is not kept:
            return self._take(reset)  # a finalizer of the job has reset just now
        # Whatever interrupts this (Ctrl-C, say): the next interval is then of this one as well.
        was_behind, self._is_behind = self._is_behind, True
        if reset:
            # As little as possible from reading to resetting: another thread may allocate.
            self._kept = marked
            self._reset()
        layout = self._layout_of(stats)
        real = layout.read(stats)
        peaks = self._interval.end(layout.four(real), is_reset=reset)
        folded = fold(floor, real)
        if self._kept is marked:
            self._kept = _Kept(kept.resets, folded)
        if folded is not real:  # else there is nothing higher
            layout.raise_to(stats, folded)
        total_bytes = total_bytes_of(stats)
        if total_bytes != UNKNOWN:
            total_bytes += self._reset_total_bytes
        self._is_behind = False
        if was_behind:
            # They are of the interval before as well, which was not ended when it was over.
            peaks = UNKNOWN_PEAKS
        return Interval(stats, peaks, total_bytes)

    def _floor(self, kept: _Kept) -> Peaks | None:
        if kept.latest is None:
            return kept.peaks
        return fold(kept.peaks, self._layout_of(kept.latest).read(kept.latest))

    def _layout_of(self, stats: Stats) -> PeakLayout:
        layout = self._layout
        if layout is None:
            layout = self._layout = PeakLayout(stats)
        return layout


def total_bytes_of(stats: Stats) -> int:
    """Bytes allocated since the totals were reset last."""
    try:
        return int(stats["allocated_bytes"]["all"]["allocated"])
    except (KeyError, TypeError):
        return UNKNOWN
