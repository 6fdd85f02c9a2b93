"""Whether growth is over: what fills up stops when it is full, and nobody says so."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np

from vramscope_analysis.evidence.columns import Numbers

_LONGER: Final = 2
"""So many times as long as any pause before one has to be to be an end."""
_RISE_OF_PACE: Final = 0.5
"""A rise is one by this share of what comes in a step; less is noise."""
_STILL_OF_PACE: Final = 0.25
"""What rose by less than this share of the pace in some rows has paused in all of them."""
_SETTLED_ROWS: Final = 2


def has_stopped(
    level: Numbers, slope_bytes: float, *, least_rises: int, least_rows: int, parts: int
) -> bool:
    """Whether it has paused for much longer than ever before.

    Near its end a kept level is made of a few rows only, and so lies above where it will be found
    later: the more so, the more one step differs from the next. So it is looked at without its
    last rows too, if these have risen by next to nothing.

    Args:
        level: what is kept, from the row where the growth began.
        slope_bytes: the pace, per row.
        least_rises: with fewer of them it is not known how they come.
        least_rows: shorter pauses are no end.
        parts: one of so many parts of the rows is left out at most.
    """
    part = len(level) // parts
    for unsettled in sorted({max(rows, _SETTLED_ROWS) for rows in (0, part // 2, part)}):
        settled = level[: len(level) - unsettled]
        if not len(settled) or level[-1] - settled[-1] > _STILL_OF_PACE * slope_bytes * unsettled:
            continue
        rises = _rises(settled, max(_RISE_OF_PACE * slope_bytes, 1.0))
        if len(rises) < max(least_rises, 2):
            continue
        pause = len(level) - 1 - rises[-1]
        if pause >= least_rows and pause > _LONGER * int(np.diff(rises).max()):
            return True
    return False


def _rises(level: Numbers, least: float) -> list[int]:
    """The rows at which it is higher, by as much, than at the one before of them."""
    values, rows = level.tolist(), list[int]()
    row = bisect_left(values, values[0] + least)
    while row < len(values):
        rows.append(row)
        # Onwards in any case: to a huge number a small one adds nothing.
        row = max(bisect_left(values, values[row] + least), row + 1)
    return rows
