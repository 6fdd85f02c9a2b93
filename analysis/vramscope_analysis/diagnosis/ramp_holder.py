"""Who holds what builds up in an evaluation: when to look for it, and what of the answer it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.evaluation_ramp import EvaluationRamp
from vramscope_analysis.diagnosis.growth_group import is_users, main_holder
from vramscope_analysis.diagnosis.held_memory import by_root
from vramscope_analysis.evidence.growth_report import GrowthGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence

GRAPH: Final = "autograd_graph"

_PEAK: Final = "step.peak_allocated_bytes"
_BELOW_TOP: Final = 0.4
"""To look when it is this share of the ramp below its top."""
_ABOVE_STEPS: Final = 1.1
"""And higher than steps are as a rule: what they hold is another thing."""
_ENOUGH: Final = 0.2
"""So much of the ramp a holder must have had, at a moment at which not all of it was there."""
_PERIODS: Final = 3
_MORE_STEPS: Final = 20
_MOST_STEPS: Final = 5000
_AGAIN_AFTER: Final = 4


def ramp_look(rank: RankEvidence, ramp: EvaluationRamp) -> Mapping[str, int] | None:
    """Parameters of the look that would tell who holds it; None: it is known, or cannot be seen.

    Args:
        rank: what is known of it.
        ramp: what builds up in its evaluations.
    """
    numbers, known = rank.steps.number, rank.within_step
    if numbers is None or not len(numbers):
        return None
    now = int(numbers[-1])
    if known is not None and (known.held or now < _AGAIN_AFTER * max((*known.steps, 1))):
        return None
    usual = rank.steps.numbers(_PEAK)
    usual = usual[~np.isnan(usual)]
    of_steps = _ABOVE_STEPS * float(np.median(usual)) if len(usual) else 0.0
    above_bytes = max(ramp.top_bytes - _BELOW_TOP * ramp.bytes, of_steps)
    if above_bytes >= ramp.top_bytes:
        return None
    gap = max(np.diff(ramp.steps), default=now)
    max_steps = min(_PERIODS * int(gap) + _MORE_STEPS, _MOST_STEPS)
    return {"above_bytes": int(above_bytes), "max_steps": max_steps}


def ramp_group(rank: RankEvidence, ramp: EvaluationRamp) -> GrowthGroup | None:
    """What held most of it when somebody looked; None is not known.

    Saved tensors of autograd are no objects of Python: where tensors do not explain the ramp, a
    tensor with a long graph does.
    """
    if rank.within_step is None:
        return None
    held = [g for g in by_root(rank.within_step.held) if main_holder(g) is not None]
    plain = [group for group in held if group.bytes >= _ENOUGH * ramp.bytes]
    if plain:
        return max(plain, key=lambda group: group.bytes)
    graphs = [group for group in held if _is_graph(group)]
    # What a module calls its arguments is no name of the user's.
    return next((group for group in graphs if _is_users(group)), next(iter(graphs), None))


def _is_users(group: GrowthGroup) -> bool:
    holder = main_holder(group)
    line = None if holder is None else holder.stored_at or holder.frame
    return line is not None and is_users(line)


def _is_graph(group: GrowthGroup) -> bool:
    holder = main_holder(group)
    return holder is not None and holder.kind == GRAPH
