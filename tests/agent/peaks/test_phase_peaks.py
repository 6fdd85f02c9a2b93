"""Phases have a peak where both ends could be marked, and never cost more than they may."""

from __future__ import annotations

from tests.support.modelled_peaks import MIB, ModelledPeaks
from vramscope.peaks.phase_peaks import PhasePeaks, StretchPeaks


class Rig(ModelledPeaks):
    def __init__(self, budget: float = 0.001) -> None:
        super().__init__()
        self.is_training_thread = True
        self.phases = PhasePeaks(
            self.meter, lambda: self.is_training_thread, budget, self.charge, self.clock_ns
        )


def test_a_phase_has_its_peak_and_what_was_allocated_in_it() -> None:
    rig = Rig()
    rig.peak(90)
    account = rig.phases.begin()
    assert account is not None
    rig.peak(30)
    rig.meter.mark(at_step_end=True)
    rig.peak(20)
    assert rig.phases.end(account) == StretchPeaks(30 * MIB, 50 * MIB)
    assert rig.allocated_peak() == 90 * MIB


def test_a_phase_in_a_phase_counts_in_both() -> None:
    rig = Rig()
    outer = rig.phases.begin()
    rig.peak(10)
    inner = rig.phases.begin()
    assert outer is not None
    assert inner is not None
    rig.peak(7)
    assert rig.phases.end(inner) == StretchPeaks(7 * MIB, 7 * MIB)
    rig.peak(1)
    assert rig.phases.end(outer) == StretchPeaks(10 * MIB, 18 * MIB)


def test_on_another_thread_nothing_is_known_and_nothing_read() -> None:
    rig = Rig()
    rig.is_training_thread = False
    assert rig.phases.begin() is None
    rig.is_training_thread = True
    account = rig.phases.begin()
    assert account is not None
    rig.is_training_thread = False
    takes = rig.takes
    assert rig.phases.end(account) == StretchPeaks(None, None)
    assert rig.takes == takes
    rig.meter.mark()
    assert account.peaks is None


def test_where_the_device_is_not_at_rest_nothing_is_known() -> None:
    rig = Rig()
    rig.is_at_rest = False
    assert rig.phases.begin() is None
    rig.is_at_rest = True
    account = rig.phases.begin()
    assert account is not None
    rig.is_at_rest = False
    assert rig.phases.end(account) == StretchPeaks(None, None)


def test_phases_that_come_quickly_stay_within_the_budget() -> None:
    rig = Rig(budget=0.001)
    rig.take_ns = 50_000
    known = 0
    for _ in range(20_000):
        account = rig.phases.begin()
        rig.now_ns += 1_000_000
        known += account is not None and rig.phases.end(account).peak_bytes is not None
    assert 0 < known < 2000
    assert rig.charged_ns <= 0.001 * rig.now_ns + 5_000_000 + 100_000


def test_after_a_while_it_is_known_again() -> None:
    rig = Rig(budget=0.001)
    rig.take_ns = 50_000
    while rig.phases.begin() is not None:
        pass
    rig.now_ns += 60 * 10**9
    assert rig.phases.begin() is not None
