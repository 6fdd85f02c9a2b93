"""Which step a command of several ranks is for: one that none of them has reached yet. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final, NamedTuple

from vramscope_server.registry.step_pace import RankPace

LEAD_S: Final = 1.5
"""The step lies about so far ahead: the ranks have to hear of it, and to answer."""
MIN_LEAD: Final = 3
"""And at least so many steps."""
_MAX_STEP: Final = 2**53
"""Beyond it no rank counts; a page could not tell two of them apart."""


class StepChoice(NamedTuple):
    """A step, and about when the ranks are there."""

    step: int
    due_s: float


def choose_step(
    paces: Collection[RankPace], left_s: float, attempt: int = 0, over: Collection[int] = ()
) -> StepChoice | None:
    """The step to ask for; none if the ranks tell steps that cannot be.

    Args:
        paces: where the ranks are. One that has told nothing yet has finished no step.
        left_s: time until the deadline.
        attempt: earlier ones, whose step was over on some rank: each doubles the lead.
        over: steps that ranks had reached when they refused.
    """
    reached = max((*(pace.reached for pace in paces), *over), default=0)
    rate_hz = max((pace.rate_hz or 0.0 for pace in paces), default=0.0)
    if not 0 <= reached + rate_hz * LEAD_S < _MAX_STEP:
        return None
    lead = max(MIN_LEAD, math.ceil(rate_hz * LEAD_S)) << attempt
    # Steps may take long: where the deadline is nearer, fewer of them have to do. One always does,
    # since a rank that is beyond it says so.
    lead = max(1, min(lead, int(rate_hz * left_s / 2))) if rate_hz > 0 else lead
    return StepChoice(reached + lead, lead / rate_hz if rate_hz > 0 else 0.0)
