"""What the budget of parts turns on and off."""

from __future__ import annotations

from tests.support.modelled_peaks import ModelledPeaks
from vramscope.peaks.peaks import Peaks


def test_with_a_budget_there_are_parts_and_peaks_of_phases() -> None:
    modelled = ModelledPeaks()
    peaks = Peaks(modelled, 0.001, modelled.charge)
    assert peaks.steps.parts is not None
    phases = peaks.of_phases(lambda: True)
    assert phases is not None
    peaks.steps.end_step(0)
    account = phases.begin()
    assert account is not None
    modelled.peak(3)
    peaks.steps.end_step(0)  # both look at the same counters
    assert phases.end(account).peak_bytes == 3 << 20


def test_without_one_there_is_neither() -> None:
    modelled = ModelledPeaks()
    peaks = Peaks(modelled, 0.0, modelled.charge)
    assert peaks.steps.parts is None
    assert peaks.of_phases(lambda: True) is None


def test_it_passes_on_the_end_and_a_fork() -> None:
    modelled = ModelledPeaks()
    told: list[str] = []
    modelled.remove = lambda: told.append("remove")  # type: ignore[method-assign]  # for the test
    modelled.forget_after_fork = lambda: told.append("fork")  # type: ignore[method-assign]  # too
    peaks = Peaks(modelled, 0.0, modelled.charge)
    peaks.forget_after_fork()
    peaks.remove()
    assert told == ["fork", "remove"]
