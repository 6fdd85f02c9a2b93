"""Accounts add up the intervals while they are open, and know what they do not know."""

from __future__ import annotations

from collections.abc import Iterable

from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_layout import UNKNOWN_PEAKS
from vramscope.peaks.peak_meter import PeakAccount, PeakMeter
from vramscope_protocol.columns import UNKNOWN


class Counters:
    """Gives intervals that the test made. Implements ``PeakCounters``."""

    def __init__(self, intervals: Iterable[Interval | None] = ()) -> None:
        self.intervals = list(intervals)
        self.meter: PeakMeter | None = None

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Interval | None:
        del at_step_end, in_backward
        if self.meter is not None:
            assert self.meter.mark() is None
        return self.intervals.pop(0)

    def remove(self) -> None: ...

    def forget_after_fork(self) -> None: ...


def interval(peak: int, total: int) -> Interval:
    return Interval({}, (peak, peak + 1, peak + 2, peak + 3), total)


def test_an_account_has_the_highest_peaks_and_all_bytes_while_it_was_open() -> None:
    meter = PeakMeter(
        Counters([interval(9, 100), interval(5, 110), interval(7, 150), interval(99, 999)])
    )
    meter.mark()
    account = meter.open()
    meter.mark()
    within = meter.open()
    meter.mark()
    meter.close(account)
    meter.close(account)
    meter.mark()
    assert account.peaks == (7, 8, 9, 10)
    assert account.volume_bytes == 50
    assert within.peaks == (99, 100, 101, 102)
    assert within.allocated_peak_bytes == 99


def test_with_one_unknown_interval_the_whole_is_unknown() -> None:
    meter = PeakMeter(Counters([interval(9, 0), Interval(None), interval(7, 5), interval(7, 6)]))
    account = meter.open()
    for _ in range(4):
        meter.mark()
    assert account.peaks == UNKNOWN_PEAKS
    assert account.volume_bytes == UNKNOWN


def test_one_unknown_peak_leaves_the_others_known() -> None:
    account = PeakAccount()
    account.add((1, UNKNOWN, 3, 4), 1)
    account.add((2, 2, 2, 2), 1)
    assert account.peaks == (2, UNKNOWN, 3, 4)


def test_totals_that_fall_were_reset_by_somebody_and_say_nothing() -> None:
    meter = PeakMeter(Counters([interval(1, 1000), interval(1, 10), interval(1, 30)]))
    meter.mark()
    account = meter.open()
    meter.mark()
    later = meter.open()
    meter.mark()
    assert account.volume_bytes == UNKNOWN
    assert later.volume_bytes == 20


def test_an_account_without_a_mark_knows_no_peak() -> None:
    assert PeakMeter(Counters()).open().allocated_peak_bytes == UNKNOWN


def test_where_counters_are_left_alone_accounts_go_on() -> None:
    meter = PeakMeter(Counters([interval(1, 0), None, interval(3, 7)]))
    meter.mark()
    account = meter.open()
    assert meter.mark() is None
    assert meter.mark() is not None
    assert (account.allocated_peak_bytes, account.volume_bytes) == (3, 7)


def test_a_mark_inside_a_mark_is_none() -> None:
    """A finalizer of the job may end a phase anywhere."""
    counters = Counters([interval(1, 0)])
    counters.meter = meter = PeakMeter(counters)
    assert meter.mark() is not None
