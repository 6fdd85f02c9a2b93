"""Growth that was found out about by looking at blocks: does it go on?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.growth_pause import has_stopped
from vramscope_analysis.diagnosis.trend import (
    EVEN,
    LEAST_SLOPE_BYTES,
    PARTS,
    Growth,
    kept_level,
    was_there_before,
)

_PAUSE_ROWS: Final = 24


def continues(floors: Floors, looked_at: Sequence[int], live_bytes: Sequence[int]) -> Growth | None:
    """Growth that was found out about by looking at blocks, and has gone on since.

    Less is asked of it than of growth of which only the course is known: it may pause, and come
    with noise. What was as high before the first look, and came back, may come back again: a list
    that is filled anew in each epoch.

    Args:
        floors: the ends of steps.
        looked_at: the steps of the looks.
        live_bytes: what was allocated at each of them.
    """
    if len(floors) < PARTS or len(looked_at) < 2 or len(live_bytes) != len(looked_at):
        return None
    steps, rise = looked_at[-1] - looked_at[0], live_bytes[-1] - live_bytes[0]
    if steps <= 0 or rise <= 0:
        return None
    slope = rise / steps
    if slope < LEAST_SLOPE_BYTES:
        return None
    first = int(np.searchsorted(floors.step, looked_at[0]))
    ahead = int(floors.step[-1]) - looked_at[0]
    level = kept_level(floors.allocated)
    if has_stopped(level[first:], slope, least_rises=2, least_rows=_PAUSE_ROWS, parts=PARTS):
        return None
    back_to = int(floors.step[-1]) - max(steps, ahead // PARTS)
    recent = int(np.searchsorted(floors.step, back_to))
    grown = float(level[recent]) - live_bytes[0]
    if first >= len(floors) or grown < EVEN * slope * (int(floors.step[recent]) - looked_at[0]):
        return None
    if was_there_before(floors.allocated[:first], float(live_bytes[0]), grown):
        return None
    return Growth(
        grown / ahead if ahead > 2 * steps else slope,
        EVEN * slope,
        looked_at[0],
        int(floors.step[-1]),
        float(live_bytes[0]),
        grown,
        None,
        0.0,
        first,
        len(floors) - 1,
    )
