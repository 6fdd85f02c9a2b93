"""Growth of a rank, read once for all judges that ask: its trend, what it is and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakKeyDictionary

from vramscope_analysis.diagnosis.continued_growth import continues
from vramscope_analysis.diagnosis.finding import Culprit
from vramscope_analysis.diagnosis.floors import ALLOCATED, Floors, floors_of
from vramscope_analysis.diagnosis.forecast import Forecast, forecast_of
from vramscope_analysis.diagnosis.gone_since import without_gone
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict, verdict_of
from vramscope_analysis.diagnosis.in_use import grown_category, use_of
from vramscope_analysis.diagnosis.sawtooth import Sawtooth, sawtooth_of
from vramscope_analysis.diagnosis.staircase import Staircase, staircase_of
from vramscope_analysis.diagnosis.trend import Growth, growth_of
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

Cause = Literal["added", "enlarged", "in use"]
"""``added``: there are more and more tensors. ``enlarged``: as many as before, which get larger.
``in use``: a model is enlarged, and works with what it has got."""

_TEETH: Final = 3.0
"""Growth that is higher than so many teeth of a sawtooth is not one of them."""
_LEAST_SPAN_STEPS: Final = 8
"""Looks that are not as far apart cannot have missed growth: they were to tell something else."""
_LEAST_SHARE: Final = 0.3
"""A report explains growth when its groups make up this share of what grew meanwhile."""


@dataclass(frozen=True, eq=False)
class GrowthReading:
    """What is to be said of the growth of one rank.

    Args:
        floors: the ends of its steps.
        growth: what goes on growing now; None is nothing.
        staircase: the same as a staircase, where it is one.
        cause: why it grows, as far as the columns tell.
        series: the column that grows.
        verdict: what the agent found, if it looked since the growth began and found it.
        is_asked: whether the agent has looked since then, whatever it found.
        forecast: when memory is full, if that is sure enough and near enough.
        sawtooth: memory that falls when Python collects; None is none.
        lines: those that allocate what grows, while the agent searches for what holds it: no
            verdict yet.
    """

    floors: Floors
    growth: Growth | None = None
    staircase: Staircase | None = None
    cause: Cause = "added"
    series: str = ALLOCATED
    verdict: GrowthVerdict | None = None
    is_asked: bool = False
    forecast: Forecast | None = None
    sawtooth: Sawtooth | None = None
    lines: tuple[Culprit, ...] = ()

    @property
    def is_suspicious(self) -> bool:
        """Whether it may be a leak."""
        if self.growth is None or self.cause != "added":
            return False
        # What collections have freed until now they will free again.
        sawtooth = self.sawtooth
        return sawtooth is None or self.growth.grown_bytes > _TEETH * sawtooth.top_bytes

    @property
    def garbage(self) -> GrowthVerdict | None:
        """The verdict, if it is that garbage waits."""
        verdict = self.verdict
        return verdict if verdict is not None and verdict.kind == "cycle_growth" else None


_readings: WeakKeyDictionary[RankEvidence, GrowthReading] = WeakKeyDictionary()


def growth_reading(rank: RankEvidence) -> GrowthReading:
    """Read the growth of a rank; the same evidence is read only once."""
    reading = _readings.get(rank)
    if reading is None:
        reading = _readings[rank] = _read(rank)
    return reading


def _read(rank: RankEvidence) -> GrowthReading:
    floors = floors_of(rank.steps)
    report = rank.growth
    staircase = staircase_of(floors, rank.stretches)
    growth = staircase.growth if staircase is not None else growth_of(floors)
    found = None if report is None else _found(report)
    sawtooth = sawtooth_of(floors, rank.samples)
    if growth is not None and report is not None and sawtooth is None:
        found = _found(without_gone(report, floors))
    elif growth is None and report is not None and found is not None:
        growth = continues(floors, report.steps, report.live_bytes_at_looks)
    if growth is None:
        return _without_growth(floors, sawtooth, found)
    is_asked = report is not None and _is_of(report, growth, found)
    verdict = found if is_asked else None
    cause, series = _cause(rank, floors, growth)
    if verdict is not None and not verdict.is_one_tensor and cause == "enlarged":
        # Whoever looked at the blocks knows better than columns do how many there are.
        cause = "added"
    forecast = forecast_of(rank, growth, is_confirmed=verdict is not None)
    if forecast is not None and not forecast.is_worth_saying:
        forecast = None
    lines = _lines(rank.growth_so_far, growth, floors) if verdict is None else ()
    return GrowthReading(
        floors, growth, staircase, cause, series, verdict, is_asked, forecast, sawtooth, lines
    )


def _without_growth(
    floors: Floors, sawtooth: Sawtooth | None, found: GrowthVerdict | None
) -> GrowthReading:
    """A sawtooth is of garbage unless the blocks that were looked at are held by somebody."""
    if sawtooth is None or (found is not None and found.kind != "cycle_growth"):
        return GrowthReading(floors)
    return GrowthReading(floors, verdict=found, is_asked=found is not None, sawtooth=sawtooth)


def _found(report: GrowthReport) -> GrowthVerdict | None:
    verdict = verdict_of(report)
    return verdict if verdict is not None and verdict.share >= _LEAST_SHARE else None


def _lines(report: GrowthReport | None, growth: Growth, floors: Floors) -> tuple[Culprit, ...]:
    """Lines behind this growth, of a report in which holders are missing."""
    found = None if report is None else _found(without_gone(report, floors))
    if report is None or found is None or not _is_of(report, growth, found):
        return ()
    return tuple(line for line in found.culprits if line.file)


def _is_of(report: GrowthReport, growth: Growth, found: GrowthVerdict | None) -> bool:
    """Whether a report was made while this growth went on, and looked for long enough."""
    if not report.steps or report.steps[-1] <= growth.since_step:
        return False
    span = report.steps[-1] - report.steps[0]
    return found is not None or span >= max(growth.period_steps, _LEAST_SPAN_STEPS)


def _cause(rank: RankEvidence, floors: Floors, growth: Growth) -> tuple[Cause, str]:
    if growth.adds_blocks is False:
        return "enlarged", ALLOCATED
    use = use_of(floors, growth)
    if use == "unnamed":
        return "added", ALLOCATED
    series = grown_category(rank.steps, growth, floors)
    return ("added" if use == "kept" else "in use"), series
