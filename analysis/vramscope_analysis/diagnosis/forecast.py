"""When memory will be full, as a range: from the pace of the growth and the peaks of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.trend import Growth
from vramscope_analysis.diagnosis.words import duration_range
from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

PEAK: Final = "step.peak_allocated_bytes"
ALLOCATED: Final = "allocated_bytes.all.current"
STRANDED: Final = "inactive_split_bytes.all.current"

LEAST_CONFIDENCE: Final = 0.7
"""Below it nothing is said."""
LONGEST_S: Final = 24 * 3600.0
"""Nobody acts on what is further away."""
_RECENT_ROWS: Final = 256
_HIGH_SHARE: Final = 98.0
"""Percentile of the peaks of recent steps that has to fit as well."""
_MARGIN: Final = 0.04
"""Both ends are moved outwards by this share: the pace was measured, not decreed."""
_SEEN_RATIO: Final = 5.0
"""So many times the length of what was seen may be looked ahead without loss of confidence."""
_LOSS_PER_DOUBLING: Final = 0.12
_LOSS_IF_CONFIRMED: Final = 0.05
_SURE: Final = 0.96


@dataclass(frozen=True)
class Forecast:
    """When memory is full, counted from the newest step.

    Args:
        early_steps, late_steps: between so many more steps.
        early_s, late_s: the same as time.
        at_step: the newest step.
        confidence: that it lies between them.
        limit_bytes: what is full then.
        peak_bytes: of the steps, as it is now.
    """

    early_steps: int
    late_steps: int
    early_s: float
    late_s: float
    at_step: int
    confidence: float
    limit_bytes: int
    peak_bytes: int

    @property
    def is_worth_saying(self) -> bool:
        """Whether it is sure enough, and near enough."""
        return self.confidence >= LEAST_CONFIDENCE and self.late_s < LONGEST_S

    @property
    def words(self) -> str:
        """``Out of memory in 26 to 34 minutes.``"""
        if self.early_steps <= 0:
            return f"Out of memory within {duration_range(self.late_s, self.late_s)}."
        return f"Out of memory in {duration_range(self.early_s, self.late_s)}."

    def evidence(self) -> dict[str, Any]:
        """As the page draws it."""
        return {
            "early_s": round(self.early_s, 1),
            "late_s": round(self.late_s, 1),
            "early_steps": self.early_steps,
            "late_steps": self.late_steps,
            "at_step": self.at_step,
            "confidence": round(self.confidence, 2),
            "limit_bytes": self.limit_bytes,
            "peak_bytes": self.peak_bytes,
        }


def forecast_of(rank: RankEvidence, growth: Growth, *, is_confirmed: bool) -> Forecast | None:
    """When the growth of a rank's floor fills what it may have.

    Args:
        rank: whose.
        growth: of its floor, or of its peaks.
        is_confirmed: whether it is known what grows, so that it will not stop by itself.
    """
    limit = allocator_limit(rank)
    if limit is None or growth.slope_bytes <= 0 or rank.steps.number is None:
        return None
    peaks = _peaks_now(rank.steps, rank.steps.number, growth)
    if peaks is None:
        return None
    usual, high = float(np.median(peaks)), float(np.percentile(peaks, _HIGH_SHARE))
    # What is stranded between live blocks may be of no use to the request that fails.
    stranded = min(rank.steps.last(STRANDED) or 0, max(limit - high, 0) / 2)
    error = min(growth.slope_error_bytes / math.sqrt(growth.parts), growth.slope_bytes / 2)
    early = (limit - stranded - high) / (growth.slope_bytes + error) * (1 - _MARGIN)
    late = (limit - usual) / (growth.slope_bytes - error) * (1 + _MARGIN)
    # The last rise is an instant of its period that is not known.
    early, late = max(early - growth.period_steps, 0), max(late, 0) + growth.period_steps
    fast_s, slow_s = _step_s(rank.steps, rank.steps.number, growth.since_step)
    return Forecast(
        math.floor(early),
        math.ceil(late),
        early * fast_s,
        late * slow_s,
        growth.until_step,
        _confidence(growth, late, error, is_confirmed=is_confirmed),
        limit,
        int(high),
    )


def _peaks_now(steps: Rows, number: NDArray[np.int64], growth: Growth) -> Numbers | None:
    """The peaks of recent steps, as high as they would be now."""
    rows = max(len(steps) - _RECENT_ROWS, int(np.searchsorted(number, growth.since_step)))
    column = steps.numbers(PEAK if PEAK in steps.columns else ALLOCATED)[rows:]
    known = ~np.isnan(column)
    if not known.any():
        return None
    ahead = (number[-1] - number[rows:][known]) * growth.slope_bytes
    peaks: Numbers = column[known] + ahead
    return peaks


def _step_s(steps: Rows, number: NDArray[np.int64], since_step: int) -> tuple[float, float]:
    """How long a step takes at least and at most, with all that lies between steps."""
    first = int(np.searchsorted(number, since_step))
    middle = (first + len(number) - 1) // 2
    paces = [
        (steps.time_ns[right] - steps.time_ns[left]) / 1e9 / (number[right] - number[left])
        for left, right in ((first, middle), (middle, len(number) - 1))
        if number[right] > number[left]
    ]
    return (float(min(paces)), float(max(paces))) if paces else (0.0, 0.0)


def _confidence(growth: Growth, late: float, error: float, *, is_confirmed: bool) -> float:
    seen = max(growth.steps, 1)
    loss = _LOSS_IF_CONFIRMED if is_confirmed else _LOSS_PER_DOUBLING
    doublings = max(math.log2(max(late, 1.0) / seen / _SEEN_RATIO), 0.0)
    return _SURE * (1 - 0.5 * error / growth.slope_bytes) / (1 + loss * doublings)
