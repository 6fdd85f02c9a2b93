"""Does memory at the ends of steps rise, and go on rising, without ever coming back?

What counts is the *kept level*: at each step the lowest value from there until now, so that what
came back later has never been growth. It never falls; noise of batches of different lengths lies
above it. A stretch of steps is cut into equal parts, and growth has to show in every part, at about
the same pace: a rise at the beginning, a single jump, or one that slows down is none.

The number of blocks has to rise as well. A leak adds tensors; longer batches and a kernel that is
enlarged make the same tensors larger.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.growth_pause import has_stopped
from vramscope_analysis.diagnosis.words import KIB, MIB
from vramscope_analysis.evidence.columns import Numbers

PARTS: Final = 6
FIRST_WINDOW: Final = 48
"""Steps that the shortest stretch has which is judged."""
LEAST_GROWTH_BYTES: Final = 8 * MIB
LEAST_SLOPE_BYTES: Final = 2 * KIB
"""Per step. Graph nodes on an accumulator are half a KiB a step: not worth a word."""
FAST_WINDOW: Final = 24
FAST_GROWTH_BYTES: Final = 20 * MIB
"""What has to come within the shorter window, in every single step or nearly so."""
EVEN: Final = 0.4
"""No part may grow by less than this share of the median part."""
_SLOWED: Final = 0.75
"""What ends up growing by less than this share of its first pace is filling up."""
_ABOVE_SHARE: Final = 0.2
"""By so much of its growth a level has to be above all that there was before it."""
_PAUSE_ROWS: Final = 8
_JUMP: Final = 4.0
_TOP_ROWS: Final = 4
"""A high level counts as having been there when it lasted for so many rows."""


@dataclass(frozen=True)
class Growth:
    """Growth that goes on.

    Args:
        slope_bytes: per step.
        slope_error_bytes: half of the range in which the pace of the parts lies.
        since_step: where it began, or the first step that is known.
        until_step: the newest.
        base_bytes: the level where it began.
        grown_bytes: how much it has been since.
        adds_blocks: whether the number of blocks rises; None is not known.
        blocks_per_step: by how many.
        first_row, last_row: of the floors.
        period_steps: steps from one rise to the next; 1 is every step.
        parts: how many paces were compared.
    """

    slope_bytes: float
    slope_error_bytes: float
    since_step: int
    until_step: int
    base_bytes: float
    grown_bytes: float
    adds_blocks: bool | None
    blocks_per_step: float
    first_row: int
    last_row: int
    period_steps: int = 1
    parts: int = PARTS - 1

    @property
    def steps(self) -> int:
        """How long it has lasted."""
        return self.until_step - self.since_step


def kept_level(values: Numbers) -> Numbers:
    """At each place the lowest value from there to the end."""
    return np.minimum.accumulate(values[::-1])[::-1]


def growth_of(floors: Floors) -> Growth | None:
    """Growth of the floor that goes on now; None if there is none, or too little to tell.

    Args:
        floors: the ends of steps.
    """
    if len(floors) < FAST_WINDOW:
        return None
    level = kept_level(floors.allocated)
    if level[-1] - level[0] < LEAST_GROWTH_BYTES:
        return None
    best: _Stretch | None = None
    window = FAST_WINDOW << ((len(floors) // FAST_WINDOW).bit_length() - 1)
    while best is None and window >= FAST_WINDOW:
        stretch = _stretch(floors, level, len(floors) - window)
        if stretch is not None and _is_enough(stretch, window):
            best = stretch
        window //= 2
    if best is None:
        return None
    return _grown(floors, level, best)


@dataclass(frozen=True)
class _Stretch:
    """A stretch of rows in each part of which it grew."""

    first: int
    slope: float
    error: float
    growth: float
    """That is certain: of the median part, times their number."""


def _stretch(floors: Floors, level: Numbers, first: int) -> _Stretch | None:
    """The growth from a row until now, if every part of it has its share."""
    starts = _starts(floors.step, first)
    rises = _steady_rises(level, starts)
    median = statistics.median(rises)
    if median <= 0 or min(rises) < EVEN * median:
        return None
    if floors.blocks is None and _is_noisy(floors.allocated, level, starts, median):
        return None
    steps = [int(step) for step in floors.step[starts]]
    paces = [rise / (b - a) for rise, (a, b) in zip(rises, pairwise(steps), strict=True)]
    slope = _theil_sen(steps, [0.0, *accumulate(rises)])
    return _Stretch(first, slope, (max(paces) - min(paces)) / 2, median * (PARTS - 1))


def _steady_rises(level: Numbers, starts: NDArray[np.int64]) -> list[float]:
    """By how much it rises from part to part, without what came at once, as a workspace does.

    What is many times as high as the highest rise of a step in most parts is none of theirs: a
    part that was level is not made even by it.
    """
    parts = [np.diff(level[a : b + 1]) for a, b in pairwise(starts.tolist())]
    most = _JUMP * statistics.median(float(rises.max()) for rises in parts)
    return [float(np.where(rises > most, 0.0, rises).sum()) for rises in parts]


def _starts(step: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Where each part of the rows begins; parts have equally many steps."""
    edges: Numbers = np.linspace(float(step[first]), float(step[-1]) + 1, PARTS + 1)[:-1]
    starts: NDArray[np.int64] = np.searchsorted(step, edges).astype(np.int64)
    return starts


def _is_noisy(values: Numbers, level: Numbers, starts: NDArray[np.int64], rise: float) -> bool:
    """Whether what lies above the level is more than what it grows by in half of the stretch."""
    first = int(starts[0])
    spread = float(np.median(values[first:] - level[first:]))
    return spread > rise * PARTS / 2


def _is_enough(stretch: _Stretch, window: int) -> bool:
    if stretch.slope < LEAST_SLOPE_BYTES:
        return False
    least = FAST_GROWTH_BYTES if window == FAST_WINDOW else LEAST_GROWTH_BYTES
    return stretch.growth >= least * (PARTS - 1) / PARTS


def _theil_sen(x: Sequence[int], y: Sequence[float]) -> float:
    """The median of the slopes of all pairs (Theil 1950, Sen 1968)."""
    pairs = combinations(zip(x, y, strict=True), 2)
    return statistics.median(
        (later[1] - early[1]) / (later[0] - early[0]) for early, later in pairs
    )


def _grown(floors: Floors, level: Numbers, stretch: _Stretch) -> Growth | None:
    first = _onset(floors, level, stretch)
    base = float(level[first])
    # Of all of it, and without what was before: the pace is known better so.
    whole = _stretch(floors, level, first) if len(floors) - first >= FAST_WINDOW else None
    stretch = whole or stretch
    grown = _grown_since(floors, level, first, stretch.slope)
    if was_there_before(floors.allocated[:first], base, grown):
        return None
    if _slows_down(floors, level, first):
        return None
    per_row = stretch.slope * float(np.diff(floors.step[first:]).mean())
    is_over = has_stopped(
        level[first:], per_row, least_rises=PARTS, least_rows=_PAUSE_ROWS, parts=PARTS
    )
    if is_over:
        return None
    adds_blocks, blocks_per_step = _blocks(floors, first)
    return Growth(
        stretch.slope,
        stretch.error,
        int(floors.step[first]),
        int(floors.step[-1]),
        base,
        grown,
        adds_blocks,
        blocks_per_step,
        first,
        len(floors) - 1,
    )


def _last_part(floors: Floors, first: int) -> int:
    return int(_starts(floors.step, min(first, len(floors) - PARTS))[-1])


def _onset(floors: Floors, level: Numbers, stretch: _Stretch) -> int:
    """The row from which it has grown at no less than the pace that a part must have."""
    first = stretch.first
    width = max((len(floors) - first) // PARTS, 1)
    while first > 0:
        before = max(first - width, 0)
        steps = floors.step[first] - floors.step[before]
        if level[first] - level[before] < EVEN * stretch.slope * steps:
            break
        first = before
    # In the parts on both sides of it: the last row that was not above their beginning.
    before, after = max(first - width, 0), min(first + width, len(floors) - PARTS)
    flat = np.flatnonzero(level[before : after + 1] <= level[before] + stretch.slope)
    return before + (int(flat[-1]) if len(flat) else 0)


def _grown_since(floors: Floors, level: Numbers, first: int, slope: float) -> float:
    """By how much the level is higher now; noise of the last steps is not counted in."""
    last = _last_part(floors, first)
    projected = level[last] + slope * (floors.step[-1] - floors.step[last])
    return float(min(level[-1], projected) - level[first])


def was_there_before(earlier: Numbers, base: float, grown: float) -> bool:
    """Whether the level now is one that has already been, and was left again: a sawtooth.

    Args:
        earlier: what was allocated before it began to grow.
        base: the level where it began.
        grown: by how much it has risen since.
    """
    rows = len(earlier) // _TOP_ROWS * _TOP_ROWS
    if not rows:
        return False
    lows = earlier[-rows:].reshape(-1, _TOP_ROWS).min(axis=1)
    return bool(base + grown <= lows.max() + _ABOVE_SHARE * grown)


def _slows_down(floors: Floors, level: Numbers, first: int) -> bool:
    """Whether it has become slower from part to part since it began: a cache that fills up."""
    starts = _starts(floors.step, min(first, len(floors) - PARTS))
    rises = _steady_rises(level, starts)
    early, late = sum(rises[:2]), sum(rises[-2:])
    return bool(late < _SLOWED * early and (np.diff(rises) > 0).sum() <= 1)


def _blocks(floors: Floors, first: int) -> tuple[bool | None, float]:
    """Whether the number of blocks rose in all parts, or nearly so, and by how many a step."""
    if floors.blocks is None:
        return None, 0.0
    starts = _starts(floors.step, min(first, len(floors) - PARTS))
    level = kept_level(floors.blocks)[starts]
    rises = np.diff(level)
    per_step = float(level[-1] - level[0]) / float(floors.step[starts[-1]] - floors.step[first])
    return bool((rises > 0).sum() >= PARTS - 2 and level[-1] - level[0] >= PARTS - 2), per_step
