"""When memory will be full, as a range: from the pace of the growth and the peaks of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.paces import (
    RECENT_ROWS,
    recent_paces,
    step_times,
    useless_memory,
)
from vramscope_analysis.diagnosis.trend import Growth
from vramscope_analysis.diagnosis.words import duration_range
from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

PEAK: Final = "step.peak_allocated_bytes"
ALLOCATED: Final = "allocated_bytes.all.current"

LEAST_CONFIDENCE: Final = 0.7
"""Below it nothing is said."""
LONGEST_S: Final = 24 * 3600.0
"""Nobody acts on what is further away."""
_MARGIN: Final = 0.04
"""Both ends are moved outwards by this share: the pace was measured, not decreed."""
_SEEN_RATIO: Final = 5.0
"""So many times the length of what was seen may be looked ahead without loss of confidence."""
_LOSS_PER_DOUBLING: Final = 0.12
_LOSS_IF_CONFIRMED: Final = 0.05
_SURE: Final = 0.96
_MAY_STOP: Final = 0.85
"""Of that, while nobody has found what grows: it may be a buffer that will be full."""


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
            return f"Out of memory in {duration_range(0.0, self.late_s)}."
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


def forecast_of(
    rank: RankEvidence, growth: Growth, *, is_confirmed: bool, series: str = ALLOCATED
) -> Forecast | None:
    """When the growth of a rank's floor fills what it may have.

    Args:
        rank: whose.
        growth: of its floor, or of its peaks.
        is_confirmed: whether it is known what grows, so that it will not stop by itself.
        series: the column that it is the growth of.
    """
    limit = allocator_limit(rank)
    steps, number = rank.steps, rank.steps.number
    if limit is None or growth.slope_bytes <= 0 or number is None:
        return None
    peaks = _peaks_now(steps, number, growth)
    if peaks is None:
        return None
    usual, high = float(np.median(peaks)), float(peaks.max())
    useless = useless_memory(steps, growth.since_step)
    error = min(growth.slope_error_bytes / math.sqrt(growth.parts), growth.slope_bytes / 2)
    slow, fast = recent_paces(steps, series, growth)
    slow = max(min(slow, growth.slope_bytes - error), growth.slope_bytes / 2)
    fast = max(fast, growth.slope_bytes + error) + useless.bytes_per_step
    early = max(limit - useless.bytes - high, 0) / fast * (1 - _MARGIN)
    late = (limit - usual) / slow * (1 + _MARGIN)
    # The last rise is an instant of its period that is not known.
    early, late = max(early - growth.period_steps, 0), max(late, 0) + growth.period_steps
    fast_s, slow_s = step_times(steps, growth.since_step)
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
    rows = max(len(steps) - RECENT_ROWS, int(np.searchsorted(number, growth.since_step)))
    column = steps.numbers(PEAK if PEAK in steps.columns else ALLOCATED)[rows:]
    known = ~np.isnan(column)
    if not known.any():
        return None
    ahead = (number[-1] - number[rows:][known]) * growth.slope_bytes
    peaks: Numbers = column[known] + ahead
    return peaks


def _confidence(growth: Growth, late: float, error: float, *, is_confirmed: bool) -> float:
    seen = max(growth.steps, 1)
    loss = _LOSS_IF_CONFIRMED if is_confirmed else _LOSS_PER_DOUBLING
    doublings = max(math.log2(max(late, 1.0) / seen / _SEEN_RATIO), 0.0)
    sure = _SURE if is_confirmed else _SURE * _MAY_STOP
    return sure * (1 - 0.5 * error / growth.slope_bytes) / (1 + loss * doublings)
