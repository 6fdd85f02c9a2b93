"""How fast a job that grows goes at present: what a forecast divides by, besides the growth itself.

Growth becomes faster or slower, memory that no request can have grows along with what is kept, and
steps take longer or shorter. Each is told as it has been, not as it might be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.head_room import needed
from vramscope_analysis.diagnosis.trend import Growth, kept_level
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Rows

STRANDED: Final = "inactive_split_bytes.all.current"
RECENT_ROWS: Final = 256
LARGE_SEGMENT_BYTES: Final = 20 * MIB
"""What PyTorch takes from the device for a request of more than 1 and less than 10 MiB."""
_EIGHTHS: Final = 8
_LEAST_PERIODS: Final = 4
"""A pace is told of a part that has so many rises; of fewer it is one or none by chance."""
_PARTS: Final = 4
"""Steps are as fast as in the fastest and in the slowest of so many parts."""


@dataclass(frozen=True)
class UselessMemory:
    """Reserved memory that the request that fails may not have.

    Args:
        bytes: now.
        bytes_per_step: how fast it grows; 0 is not, or not known.
    """

    bytes: float = 0.0
    bytes_per_step: float = 0.0


def useless_memory(steps: Rows, since_step: int) -> UselessMemory:
    """What is reserved and not needed at the peaks, as far as it is in pieces.

    Free pieces between live blocks are. And up to one large segment is lost at the end: either its
    rest, for small requests have segments of their own, or what is left is too little for one.

    Args:
        steps: of the rank.
        since_step: where its growth began.
    """
    over = np.maximum(steps.numbers("step.peak_reserved_bytes") - needed(steps), 0)
    useless = np.minimum(over, steps.numbers(STRANDED)) + LARGE_SEGMENT_BYTES
    known = np.flatnonzero(np.isfinite(useless))
    if steps.number is None or not len(known):
        return UselessMemory()
    number, useless = steps.number[known], useless[known]
    grown = useless[int(np.searchsorted(number, since_step)) :]
    part = max(len(grown) // _PARTS, 1)
    now = float(np.median(useless[-min(part, RECENT_ROWS) :])) if len(grown) else 0.0
    rise = float(np.median(grown[-part:]) - np.median(grown[:part])) if len(grown) else 0.0
    # From the middle of the first part to the middle of the last.
    lasted = max(int(number[-1]) - since_step, 1) * (_PARTS - 1) / _PARTS
    return UselessMemory(now, max(rise, 0.0) / lasted)


def recent_paces(steps: Rows, series: str, growth: Growth) -> tuple[float, float]:
    """The slowest and the fastest pace of the last quarter, in bytes a step.

    Args:
        steps: of the rank.
        series: the column that grows.
        growth: of it.
    """
    column = steps.numbers(series)
    known = np.flatnonzero(np.isfinite(column))
    if steps.number is None or not len(known):
        return growth.slope_bytes, growth.slope_bytes
    number = steps.number[known]
    first = int(np.searchsorted(number, growth.since_step))
    number, level = number[first:], kept_level(column[known][first:])
    part = len(number) // _EIGHTHS
    if part < _LEAST_PERIODS * max(growth.period_steps, 2):
        return growth.slope_bytes, growth.slope_bytes
    edges = [len(number) - 1 - 2 * part, len(number) - 1 - part, len(number) - 1]
    paces = [float((level[b] - level[a]) / (number[b] - number[a])) for a, b in pairwise(edges)]
    return min(paces), max(paces)


def step_times(steps: Rows, since_step: int) -> tuple[float, float]:
    """How long a step will take at least and at most, with all that lies between steps.

    Args:
        steps: of the rank.
        since_step: from where on.
    """
    number = steps.number
    if number is None or not len(number):
        return 0.0, 0.0
    edges: NDArray[np.int64] = np.linspace(
        int(np.searchsorted(number, since_step)), len(number) - 1, _PARTS + 1
    ).astype(np.int64)
    paces: list[float] = [
        float((steps.time_ns[b] - steps.time_ns[a]) / 1e9 / (number[b] - number[a]))
        for a, b in pairwise(edges.tolist())
        if number[b] > number[a]
    ]
    if not paces or min(paces) <= 0:
        return 0.0, max(paces, default=0.0)
    fast, slow = min(paces), max(paces)
    # Steps that became slower from part to part, or faster, may become so as much again.
    if paces == sorted(paces):
        slow *= slow / fast
    elif paces == sorted(paces, reverse=True):
        fast *= fast / slow
    return fast, slow
