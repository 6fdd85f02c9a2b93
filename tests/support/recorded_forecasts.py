"""What was forecast in recorded jobs that grow, against the step at which memory really ran out.

``python -m tests.support.recorded_forecasts`` prints the table of docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests.cases.workloads.growing import GROWING
from tests.cases.workloads.record_growing import FOLDER
from tests.support.recorded_workload import RecordedWorkload
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.near_oom import near_oom

WAYS: Final = (25, 50, 75)
"""Percent of the way to the end."""
FIRST_ROW: Final = 20


@dataclass(frozen=True)
class Told:
    """A forecast as a finding carried it.

    Args:
        row: steps that were over.
        early_step, late_step: between which steps memory was to be full.
        confidence: as it was stated.
        is_right: whether it really was.
    """

    row: int
    early_step: int
    late_step: int
    confidence: float
    is_right: bool


@cache
def recorded(name: str) -> RecordedWorkload:
    """One of the recorded jobs."""
    return RecordedWorkload.read(FOLDER / f"{name}.npz")


def end_of(name: str) -> int | None:
    """The step in which memory ran out; None if it did not."""
    end: int | None = recorded(name).about["oom_step"]
    return end


@cache
def told_at(name: str, row: int) -> Told | None:
    """What was forecast after so many steps; None is silence."""
    (rank,) = recorded(name).run(row).ranks
    end = end_of(name)
    for finding in (*leak(rank), *near_oom(rank)):
        forecast = finding.evidence.get("forecast")
        if forecast is not None:
            early, late = (
                forecast["at_step"] + forecast[key] for key in ("early_steps", "late_steps")
            )
            is_right = end is not None and early <= end <= late
            return Told(row, early, late, forecast["confidence"], is_right)
    return None


def row_at(name: str, percent: int) -> int:
    """The row at so much of the way to the end of memory, or of the job."""
    return (end_of(name) or len(recorded(name).steps)) * percent // 100


def told_all_along(name: str, every: int = 10) -> list[Told]:
    """All that was forecast in a job, looked at after each so many steps."""
    rows = range(FIRST_ROW, len(recorded(name).steps) + 1, every)
    return [told for row in rows if (told := told_at(name, row)) is not None]


def table() -> Iterator[str]:
    """Lines of the table, one a job."""
    yield "| job | ran out in step | at 25 % | at 50 % | at 75 % | right, of all told |"
    yield "|---|---|---|---|---|---|"
    for name, growing in GROWING.items():
        end = end_of(name)
        cells = [_cell(told_at(name, row_at(name, way))) for way in WAYS]
        told = told_all_along(name)
        right = f"{sum(each.is_right for each in told)} of {len(told)}" if told else "–"
        words = (growing.job.__doc__ or name).strip().rstrip(".").replace("\n    ", " ")
        yield f"| {words} | {end or 'never'} | {' | '.join(cells)} | {right} |"


def at_ways() -> list[Told]:
    """All that was told at the ways of all jobs."""
    found = [told_at(name, row_at(name, way)) for name in GROWING for way in WAYS]
    return [each for each in found if each is not None]


def _cell(told: Told | None) -> str:
    if told is None:
        return "silent"
    wrong = "" if told.is_right else ", wrong"
    return f"{told.early_step} to {told.late_step}{wrong}"


if __name__ == "__main__":
    print("\n".join(table()))
    told = at_ways()
    print(
        f"{sum(each.is_right for each in told)} of {len(told)} right,"
        f" at {sum(each.confidence for each in told) / len(told):.2f}"
    )
