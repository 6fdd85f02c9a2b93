"""What the steps before an out-of-memory needed: what they kept, and what each took besides.

The *floor* is what is allocated at the end of a step; the *moving part* what its peak has beyond
the constant part. The constant part is the floor without the gradients that are dropped before the
next forward pass: at a step's end they are still there, at its peak they are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.batch.batch_sizes import batch_sizes
from vramscope_analysis.evidence.columns import NO_ROWS, Numbers, Rows
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

_FLOOR: Final = "allocated_bytes.all.current"
_PEAK: Final = "step.peak_allocated_bytes"
_WARM_UP_STEPS: Final = 3
"""The first steps make the optimizer's state, workspaces and gradients."""
_LEAST_STEPS: Final = 5
"""Fewer steps after that show no trend."""
_TRAINING_PHASES: Final = (0, 3)
"""Codes of the phases train and data_wait."""
_STEADY_STEPS: Final = 5
_RECENT: Final = 64
_RISING: Final = 0.8
"""Share of pairs of steps in which the later one needs more, from which on it is a trend."""
_JUMP: Final = 0.6
"""Share of the whole range that lies between all before and all after a jump."""
_LASTING_STEPS: Final = 3
"""So many steps have to show that what came in a jump stays."""


@dataclass(frozen=True)
class Growth:
    """Something that was more at the end than at the beginning.

    Args:
        bytes: how much more.
        per_step: the slope, in bytes for each step.
        since_step: the step from which on it rose; None is not known.
        is_jump: most of it came in a single step.
    """

    bytes: int
    per_step: float
    since_step: int | None
    is_jump: bool


@dataclass(frozen=True, eq=False)
class Demand:
    """What is known of the steps before the failure, all of it measured.

    Args:
        steps: how many ended in this process; 0 is none.
        floor_bytes: allocated at the end of the last one.
        constant_bytes: of that, what is there at the peak of a step as well.
        gradients_bytes: gradients at the end of the last step; before the first, as many as
            there can be.
        has_gradients: whether they had been made.
        usual_peak_bytes, highest_peak_bytes: median and highest peak of the last steps; those in
            which something else than training went on do not count.
        lowest_peak_bytes: the lowest of them.
        highest_moving_bytes: the most that one of them had beyond its constant part.
        kept: growth of the floors; None is none.
        growing: steady growth of what peaks have beyond the floors; None is none.
        batch: samples of a step as the job's framework or its user said, if it was the same in
            the last steps; that of the step that failed was not told yet.
    """

    steps: int = 0
    floor_bytes: int | None = None
    constant_bytes: int | None = None
    gradients_bytes: int | None = None
    has_gradients: bool = True
    usual_peak_bytes: int | None = None
    highest_peak_bytes: int | None = None
    lowest_peak_bytes: int | None = None
    highest_moving_bytes: int | None = None
    kept: Growth | None = None
    growing: Growth | None = None
    batch: int | None = None

    @classmethod
    def of(cls, report: OomReport, rank: RankEvidence | None = None) -> Demand:
        """From the rows of the report, or those of the rank if they reach further back."""
        rows = steps_before(report, rank)
        if not len(rows):
            return cls(steps=max(report.step or 0, 0), **_before_first_step(report))
        floors, peaks = rows.numbers(_FLOOR), rows.numbers(_PEAK)
        peaks[_is_mixed(rows, report, rank)] = np.nan
        floor = rows.last(_FLOOR)
        dropped = _dropped_gradients(rows)
        constant = None if floor is None else max(floor - dropped, 0)
        start = max(len(peaks) - _RECENT, min(_WARM_UP_STEPS, len(peaks) - 1))
        known = peaks[start:][~np.isnan(peaks[start:])]
        # A step begins where the one before it ended.
        before = np.concatenate((floors[:1], floors[:-1]))
        moving = (peaks - np.minimum(before, floors) + dropped)[start:]
        moving = moving[~np.isnan(moving)]
        growing = _growth(peaks - floors, rows)
        return cls(
            steps=max(len(rows), report.step or 0),
            floor_bytes=floor,
            constant_bytes=constant,
            gradients_bytes=_amount(rows.last("category.gradients_bytes")),
            usual_peak_bytes=int(np.median(known)) if len(known) else None,
            highest_peak_bytes=int(known.max()) if len(known) else None,
            lowest_peak_bytes=int(known.min()) if len(known) else None,
            highest_moving_bytes=int(moving.max()) if len(moving) else None,
            kept=_growth(floors, rows),
            growing=None if growing is None or growing.is_jump else growing,
            batch=_steady(batch_sizes(rows)),
        )

    @property
    def is_first_step(self) -> bool:
        """Whether no step had ended."""
        return self.steps == 0


def steps_before(report: OomReport, rank: RankEvidence | None) -> Rows:
    """Rows of the steps that ended before the failure, in the same life of the process."""
    candidates = [report.steps, NO_ROWS if rank is None else rank.steps]
    until = [_until(rows, report.time_ns) for rows in candidates]
    return max(until, key=len)


def _is_mixed(rows: Rows, report: OomReport, rank: RankEvidence | None) -> NDArray[np.bool_]:
    """Steps in which an evaluation, a checkpoint or a phase of the user lay."""
    mixed = np.zeros(len(rows), np.bool_)
    phases = report.samples.numbers("phase")
    other = ~np.isnan(phases) & ~np.isin(phases, _TRAINING_PHASES)
    times = [int(time) for time in report.samples.time_ns[other]]
    for stretch in () if rank is None else rank.stretches:
        end_ns = report.time_ns if stretch.end_ns is None else stretch.end_ns
        first, last = np.searchsorted(rows.time_ns, (stretch.start_ns, end_ns))
        mixed[first : last + 1] = True
    at = np.searchsorted(rows.time_ns, np.array(times, np.int64))
    mixed[at[at < len(rows)]] = True
    return mixed


def _until(rows: Rows, time_ns: int) -> Rows:
    if not len(rows) or not time_ns:
        return rows
    rows = rows.before(int(np.searchsorted(rows.time_ns, time_ns, side="right")))
    if rows.number is None or len(rows) < 2:
        return rows
    # Where the numbers begin again, another life of the process began.
    again = np.flatnonzero(np.diff(rows.number) <= 0)
    return rows.after(int(again[-1]) + 1) if len(again) else rows


def _before_first_step(report: OomReport) -> dict[str, Any]:
    """Of a process in its first step: what its modules and optimizers have, where that was told."""
    told = {name.removeprefix("category."): size for name, size in report.by_category.items()}
    if not told.get("parameters_bytes"):
        return {}
    constant = sum(told.get(f"{n}_bytes", 0) for n in ("parameters", "buffers", "optimizer_state"))
    # Those of a backward pass that has begun are as large as the parameters at most.
    return {
        "constant_bytes": constant,
        "gradients_bytes": told["parameters_bytes"],
        "has_gradients": bool(told.get("gradients_bytes")),
    }


def _dropped_gradients(rows: Rows) -> int:
    """Gradients of the step's end that are gone when the next backward pass begins."""
    gradients = rows.last("category.gradients_bytes")
    kept = rows.last("category.gradients_kept_bytes")
    return 0 if gradients is None or kept is None else max(gradients - kept, 0)


def _growth(values: Numbers, rows: Rows) -> Growth | None:
    """Whether values rose to their end, by how much, and since when."""
    known = np.flatnonzero(~np.isnan(values))
    known = known[known >= _WARM_UP_STEPS]
    if len(known) < _LEAST_STEPS:
        return None
    known = known[-1024:]
    level = values[known]
    start = float(np.median(level[:_LEAST_STEPS]))
    grown = float(level[-1]) - start
    if grown <= 0 or level[-1] < level.max() - 0.25 * grown:
        return None
    jump = _jump(level)
    if jump is None and _rising_share(level) < _RISING:
        return None
    first = int(np.argmax(level > start + 0.02 * grown)) if jump is None else jump
    span = max(len(level) - 1 - first, 1)
    per_step = float(level[-1] - level[first]) / span if jump is None else grown / len(level)
    number = None if rows.number is None else int(rows.number[known[first]])
    return Growth(int(grown), per_step, number, jump is not None)


def _jump(level: NDArray[np.float64]) -> int | None:
    """The row from which on all is higher than anything before, by most of the whole range."""
    rise = int(np.argmax(np.diff(level))) + 1
    if not 2 <= rise <= len(level) - _LASTING_STEPS:
        return None
    gap = float(level[rise:].min() - level[:rise].max())
    return rise if gap >= _JUMP * float(level.max() - level.min()) else None


def _rising_share(level: NDArray[np.float64]) -> float:
    """Share of pairs in which the later value is the higher one; of equal values half (Kendall)."""
    sample = level[np.unique(np.linspace(0, len(level) - 1, 100).astype(int))]
    signs = np.sign(sample[None, :] - sample[:, None])[np.triu_indices(len(sample), 1)]
    return float((signs > 0).mean() + 0.5 * (signs == 0).mean())


def _steady(values: Numbers) -> int | None:
    """The last values that are known, if they are all the same."""
    known = values[~np.isnan(values)][-_STEADY_STEPS:]
    return int(known[-1]) if len(known) and known[-1] >= 1 and np.ptp(known) == 0 else None


def _amount(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None
