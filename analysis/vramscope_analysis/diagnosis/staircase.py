"""Growth that comes in equal steps up: at each evaluation, each checkpoint, each new trial.

Between two rises nothing happens for many training steps, so a slope is a poor picture of it, and
waiting until it shows as one would take too long. Three equal rises at equal distances, with level
ground between them and nothing that comes back, are looked for instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.trend import Growth, kept_level
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.run_evidence import Stretch

LEAST_RISES: Final = 3
LEAST_RISE_BYTES: Final = 2 * MIB
LEAST_PERIOD_STEPS: Final = 4
_ALIKE: Final = 1.5
"""The largest of what has to be alike over the smallest."""
_OF_LARGEST: Final = 0.4
"""A rise counts when it has this share of the largest of the last few."""
_LEVEL_SHARE: Final = 0.15
"""Share of the growth that may come between the rises."""
_STILL_DUE: Final = 1.7
"""Without a rise for so many periods it is over."""
_NOISE_SHARE: Final = 0.25
"""Of a rise: what may lie above the level ground in half of the steps."""
_SHORT_PERIOD_STEPS: Final = 16
_RISES_OF_SHORT: Final = 6
_MOST_RISES: Final = 64
_SETTLED_ROWS: Final = 2
_MORE_WORK: Final = 2.5
"""Of a rise: by so much more is handed out from rise to rise where the work itself gets larger.
Whoever reads what a leak has kept hands out once or twice what was added since the last time."""


@dataclass(frozen=True)
class Staircase:
    """Equal rises at equal distances, which go on.

    Args:
        growth: as of a slope: the rises spread over the steps between them.
        rise_bytes: the median rise.
        steps: the steps at whose ends each rise was first seen.
        at: what each rise comes with: ``eval``, ``checkpoint``, another phase's name, or empty.
    """

    growth: Growth
    rise_bytes: float
    steps: tuple[int, ...]
    at: str


def staircase_of(
    floors: Floors, stretches: Sequence[Stretch] = (), least_rises: int = LEAST_RISES
) -> Staircase | None:
    """The staircase that the floor climbs now; None if there is none.

    Args:
        floors: the ends of steps.
        stretches: phases that the rises may come with.
        least_rises: from how many on it is one; two are no reason to say anything.
    """
    if len(floors) < least_rises * LEAST_PERIOD_STEPS:
        return None
    level = kept_level(floors.allocated)
    if level[-1] - level[0] < least_rises * LEAST_RISE_BYTES:
        return None
    rows = _rises(level, least_rises)
    if len(rows) < least_rises:
        return None
    rows = _alike_tail(floors, level, rows, stretches)
    if len(rows) < least_rises:
        return None
    return _staircase(floors, level, rows, stretches)


def _rises(level: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Rows at which the kept level is much higher than at the row before."""
    # What the last rows show may still go.
    differences = np.diff(level[: len(level) - _SETTLED_ROWS])
    largest = np.partition(differences, -count)[-count] if len(differences) > count else 0
    least = max(_OF_LARGEST * float(largest), LEAST_RISE_BYTES)
    return (np.flatnonzero(differences >= least) + 1)[-_MOST_RISES:]


def _alike_tail(
    floors: Floors,
    level: NDArray[np.float64],
    rows: NDArray[np.int64],
    stretches: Sequence[Stretch],
) -> NDArray[np.int64]:
    """As many of the last rises as are alike in size, and in distance or in what they come with."""
    sizes = level[rows] - level[rows - 1]
    names = [_comes_with(floors, int(row), stretches) for row in rows]
    first = len(rows) - 1
    while first > 0:
        tail = slice(first - 1, None)
        gaps = np.diff(floors.step[rows[tail]])
        with_one = names[first - 1] and len(set(names[first - 1 :])) == 1
        if sizes[tail].max() > _ALIKE * sizes[tail].min():
            break
        if not with_one and gaps.max() > _ALIKE * gaps.min():
            break
        first -= 1
    return rows[first:]


def _comes_with(floors: Floors, row: int, stretches: Sequence[Stretch]) -> str:
    """The phase that lay between the end of the step before and the end of this one."""
    after_ns, until_ns = floors.time_ns[row - 1], floors.time_ns[row]
    for stretch in reversed(stretches):
        if stretch.start_ns >= until_ns:
            continue
        if stretch.end_ns is not None and stretch.end_ns <= after_ns:
            # Stretches are in the order of their beginning; one before may still be longer.
            if stretch.start_ns < after_ns - (until_ns - after_ns):
                break
            continue
        if stretch.name not in ("train", "data_wait"):
            return stretch.name
    return ""


def _staircase(
    floors: Floors,
    level: NDArray[np.float64],
    rows: NDArray[np.int64],
    stretches: Sequence[Stretch],
) -> Staircase | None:
    gaps = np.diff(floors.step[rows])
    period = float(np.median(gaps))
    first, last = int(rows[0]), int(rows[-1])
    rises = level[rows] - level[rows - 1]
    grown = float(level[last] - level[first - 1])
    if period < LEAST_PERIOD_STEPS or grown - rises.sum() > _LEVEL_SHARE * grown:
        return None
    if floors.step[-1] - floors.step[last] > _STILL_DUE * gaps.max():
        return None
    if period < _SHORT_PERIOD_STEPS and len(rows) < _RISES_OF_SHORT:
        return None
    noise = float(np.median(floors.allocated[first:] - level[first:]))
    if noise > _NOISE_SHARE * float(np.median(rises)):
        return None
    if _is_more_work(floors, rows, rises):
        return None
    adds_blocks = None
    if floors.blocks is not None:
        blocks = kept_level(floors.blocks)
        adds_blocks = bool((blocks[rows] > blocks[rows - 1]).all())
    slope = float(np.median(rises)) / period
    growth = Growth(
        slope,
        float(np.ptp(rises)) / 2 / period,
        int(floors.step[first - 1]),
        int(floors.step[-1]),
        float(level[first - 1]),
        grown,
        adds_blocks,
        1 / period,
        first - 1,
        len(floors) - 1,
        round(period),
    )
    names = {_comes_with(floors, int(row), stretches) for row in rows}
    return Staircase(
        growth,
        float(np.median(rises)),
        tuple(int(step) for step in floors.step[rows]),
        names.pop() if len(names) == 1 else "",
    )


def _is_more_work(floors: Floors, rows: NDArray[np.int64], rises: NDArray[np.float64]) -> bool:
    """Whether more is done each time, as in an evaluation of a set that grows.

    What stays until the next time is then larger each time, and was not kept from the times before.
    """
    if floors.volume is None:
        return False
    more = np.diff(floors.volume[rows])
    return bool(np.median(more) > _MORE_WORK * float(np.median(rises)) and more.min() > 0)
