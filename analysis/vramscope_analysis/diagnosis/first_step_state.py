"""The finding ``first_step_state``: the optimizer's state came with the first step, and stays.

Adam and its like make their state when they first step. So the first step needs less than all that
follow, and a batch size that was probed without a step is too large by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.advisor import BACKWARD, FORWARD
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.optimizer_advice import offloaded_state, smaller_state
from vramscope_analysis.diagnosis.peak_parts import peak_parts
from vramscope_analysis.diagnosis.words import MIB, count_text, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "first_step_state"
TOLD_FOR_STEPS: Final = 60
"""It is news for so long; after that it is part of what the account shows."""
MIN_SHARE: Final = 0.05
MIN_BYTES: Final = 64 * MIB
FULL_SHARE: Final = 0.98


@dataclass(frozen=True)
class FirstState:
    """What came with the first step of an optimizer.

    Args:
        step: number of that step.
        state_bytes: the optimizers' state at its end.
        first_peak_bytes: the peak of that step; None is not known.
        peak_part: the part of the step in which it was; 0 is not known.
        steps_since: steps that have followed.
    """

    step: int
    state_bytes: int
    first_peak_bytes: int | None
    peak_part: int
    steps_since: int

    @property
    def next_peak_bytes(self) -> int | None:
        """What a step alike needs with the state there; None where it is not known."""
        if self.first_peak_bytes is None or self.peak_part not in (FORWARD, BACKWARD):
            return None
        return self.first_peak_bytes + self.state_bytes


def first_step_state(rank: RankEvidence) -> list[Finding]:
    """Judge the first steps of a job whose optimizer has just made its state."""
    first = first_state(rank)
    limit_bytes = allocator_limit(rank)
    if first is None or limit_bytes is None or first.steps_since >= TOLD_FOR_STEPS:
        return []
    if first.state_bytes < max(MIN_BYTES, MIN_SHARE * limit_bytes):
        return []
    needs = first.next_peak_bytes if first.steps_since == 0 else None
    will_not_fit = needs is not None and needs > FULL_SHARE * limit_bytes
    came = f"The optimizer's state came with step {count_text(first.step)}: "
    came = f"{came}{size_text(first.state_bytes)} that stay"
    if will_not_fit:
        summary = fitting(
            f"{came}; the next step needs {size_text(needs)} of {size_text(limit_bytes)}.",
            f"The next step needs {size_text(needs)} of {size_text(limit_bytes)}.",
        )
    else:
        summary = fitting(f"{came} from now on.")
    return [
        Finding(
            KIND,
            "critical" if will_not_fit else "info",
            summary,
            _evidence(first, limit_bytes),
            0.8 if will_not_fit else 0.95,
            remedies=_remedies(rank),
            detail="The first step was without it. A batch size that was probed without a step of "
            f"the optimizer is too large by {size_text(first.state_bytes)}.",
            since_step=first.step,
        )
    ]


def first_state(rank: RankEvidence) -> FirstState | None:
    """The first step at whose end there was an optimizer's state, seen from before it was there."""
    rows = rank.steps.before(TOLD_FOR_STEPS + 1)
    state = rows.numbers("category.optimizer_state_bytes")
    known = np.flatnonzero(np.isfinite(state))
    if rows.number is None or not len(known):
        return None
    has_state = np.flatnonzero(np.isfinite(state) & (state > 0))
    if not len(has_state):
        return None
    at = int(has_state[0])
    # In the first row of all it is only known to be new if that was the first step of the job.
    is_new = rows.number[at] <= 1 if at == 0 else bool((state[known[known < at]] == 0).any())
    if not is_new and rows.number[at] > 1:
        return None
    peak = rows.numbers("step.peak_allocated_bytes")[at]
    if not np.isfinite(peak):
        peak = rows.numbers("allocated_bytes.all.peak")[at]
    part = rows.numbers("step.peak_part")[at]
    return FirstState(
        step=int(rows.number[at]),
        state_bytes=int(state[at]),
        first_peak_bytes=int(peak) if np.isfinite(peak) else None,
        peak_part=int(part) if np.isfinite(part) else 0,
        steps_since=len(rank.steps) - 1 - at,
    )


def _evidence(first: FirstState, limit_bytes: int) -> dict[str, Any]:
    return {
        "series": "category.optimizer_state_bytes",
        "state_bytes": first.state_bytes,
        "first_peak_bytes": first.first_peak_bytes,
        "next_peak_bytes": first.next_peak_bytes,
        "limit_bytes": limit_bytes,
        "since_step": first.step,
    }


def _remedies(rank: RankEvidence) -> tuple[Remedy, ...]:
    probe = Remedy(
        "probe batch sizes with a whole step, the optimizer's included",
        "Only after it is there what all later steps need.",
    )
    parts = peak_parts(rank)
    if parts is None:
        return (probe,)
    measures = (smaller_state(rank, parts), offloaded_state(rank, parts))
    return (probe, *(remedy for remedy in measures if remedy is not None))
