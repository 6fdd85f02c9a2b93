"""The finding ``leak``: memory at the ends of steps that rises and does not come back."""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.words import count_text, rate_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "leak"
FLOOR: Final = "allocated_bytes.all.current"
_LEAST_STEPS: Final = 60


def leak(rank: RankEvidence) -> list[Finding]:
    """Judge the floor of a rank's steps."""
    steps = rank.steps
    if len(steps) < 2 * _LEAST_STEPS or steps.number is None:
        return []
    floor = steps.numbers(FLOOR)[-_LEAST_STEPS:]
    number = steps.number[-_LEAST_STEPS:]
    rises = np.diff(floor)
    if np.isnan(rises).any() or (rises <= 0).any():
        return []
    slope = float(floor[-1] - floor[0]) / float(number[-1] - number[0])
    return [
        Finding(
            KIND,
            "warning",
            f"Memory grew {rate_text(slope)} for {count_text(_LEAST_STEPS, 'step')}.",
            {"series": FLOOR, "since_step": int(number[0]), "slope_bytes_per_step": slope},
            0.7,
            stage="suspected",
            since_step=int(number[0]),
        )
    ]
