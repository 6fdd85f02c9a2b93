"""Growth of what has a name: a model that is enlarged, or models that were never let go.

Parameters, gradients, optimizer state and buffers may grow with good reason: layers are added or
unfrozen, experts get their first gradient. What is in use costs memory in each step: gradients and
activations are handed out anew. A model that is only kept costs none, however often another one is
added to it.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from vramscope_analysis.diagnosis.floors import CATEGORIES, Floors
from vramscope_analysis.diagnosis.trend import Growth, kept_level
from vramscope_analysis.evidence.columns import Numbers, Rows

Use = Literal["unnamed", "in use", "kept", "not known"]

_OF_GROWTH: Final = 0.5
"""So much of the growth has to be named for it to be growth of what has a name."""
_VOLUME_SHARE: Final = 0.3
"""What is used is handed out again in each step by at least this share of its size."""


def use_of(floors: Floors, growth: Growth) -> Use:
    """What has grown: ``unnamed`` memory, or named memory that is in use, or is only kept.

    Args:
        floors: the ends of steps.
        growth: theirs.
    """
    if floors.named is None:
        return "unnamed"
    rows = slice(growth.first_row, growth.last_row + 1)
    named = kept_level(floors.named[rows])
    # What has a name is counted at a look now and then, so that its level may lag behind.
    unnamed = kept_level((floors.allocated - floors.named)[rows])
    named_growth = _rise(named)
    if named_growth < _OF_GROWTH * growth.grown_bytes or _rise(unnamed) > named_growth:
        return "unnamed"
    if floors.volume is None:
        return "not known"
    return _is_used(floors.volume[rows], named_growth)


def _is_used(volume: Numbers, growth_bytes: float) -> Use:
    third = max(len(volume) // 3, 1)
    early, late = volume[:third], volume[-third:]
    more = float(np.median(late) - np.median(early))
    if more >= _VOLUME_SHARE * growth_bytes / 2:
        return "in use"
    # Steps that differ by more than that say nothing about it.
    spread = float(np.median(np.abs(late - np.median(late))))
    return "not known" if spread > _VOLUME_SHARE * growth_bytes else "kept"


def _rise(level: Numbers) -> float:
    return float(level[-1] - level[0])


def grown_category(steps: Rows, growth: Growth, floors: Floors) -> str:
    """The column of the category that grew most."""
    first, last = floors.row[growth.first_row], floors.row[growth.last_row]

    def rise(name: str) -> float:
        column = steps.numbers(name)[first : last + 1]
        known = column[~np.isnan(column)]
        return float(known[-1] - known[0]) if len(known) else 0.0

    return max(CATEGORIES, key=rise)
