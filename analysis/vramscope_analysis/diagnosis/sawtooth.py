"""Floors that rise and fall again: do they fall as Python's collector frees objects in cycles?

Memory in reference cycles stays until the collector comes by, and falls within the same moment.
Whether that is chance is reckoned: with the share of all steps in which it freed anything, and the
number of falls. A job that calls the collector itself may let go of other memory at the same time;
young collections come by themselves.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Rows

COLLECTED: Final = "gc.collected"
FULL_COLLECTIONS: Final = "gc.full_collections"

LEAST_FALL_BYTES: Final = 8 * MIB
_OF_RISE: Final = 0.5
"""A fall gives back at least this share of what had gathered since the one before."""
_OF_LARGEST: Final = 0.25
_LEAST_RISES: Final = 2
"""It has to have gathered in so many rises before a fall: not a model that came and went."""
_CHANCE: Final = 0.05
_MATCHED: Final = 0.75
_MOST_OF_ROWS: Final = 0.1
_MOST_FALLS: Final = 64
_STILL_DUE: Final = 4.0
"""Without a fall for so many times as long as between two, it is over."""


@dataclass(frozen=True)
class Sawtooth:
    """Memory that gathers until a collection frees it.

    Args:
        top_bytes: the most that one fall gave back.
        held_bytes: what has gathered since the last.
        falls: the steps at whose ends it had fallen.
        chance: of so many falls coming with collections by accident.
        period_steps: between two falls; None where there was only one.
        is_automatic: whether most falls came with young collections, which nobody calls for.
    """

    top_bytes: float
    held_bytes: float
    falls: tuple[int, ...]
    chance: float
    period_steps: int | None
    is_automatic: bool


def sawtooth_of(floors: Floors, samples: Rows) -> Sawtooth | None:
    """A sawtooth that falls as objects in cycles are freed; None if there is none.

    Args:
        floors: the ends of steps.
        samples: which count these objects.
    """
    if len(floors) < 2 or not len(samples):
        return None
    falls = _falls(floors)
    if not len(falls):
        return None
    # Where small cycles are freed all the time, the falls that count come with full collections.
    for name in (COLLECTED, FULL_COLLECTIONS):
        matched, chance = _matched(falls, _rose(floors, samples, name))
        if chance <= _CHANCE:
            full = _rose(floors, samples, FULL_COLLECTIONS)
            is_automatic = full is not None and float((full[matched] > 0).mean()) <= 1 - _MATCHED
            return _sawtooth(floors, matched, chance, is_automatic=is_automatic)
    return None


def _matched(
    falls: NDArray[np.int64], rose: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], float]:
    """The falls in whose step a count rose, if these are nearly all, and the chance of that."""
    if rose is None:
        return falls, 1.0
    falls = falls[rose[falls] >= 0]  # what was before the first sample is not known
    matched = falls[rose[falls] > 0]
    if not len(matched) or len(matched) < _MATCHED * len(falls):
        return falls, 1.0
    return matched, float((rose > 0).sum() / (rose >= 0).sum()) ** len(matched)


def last_collection_step(samples: Rows) -> int | None:
    """How many steps were over when objects in cycles were freed last."""
    count = samples.numbers(COLLECTED)
    rises = np.flatnonzero(np.diff(count) > 0)
    if samples.number is None or not len(rises):
        return None
    return int(samples.number[rises[-1] + 1])


def _falls(floors: Floors) -> NDArray[np.int64]:
    """Rows at which much of what had gathered since the last fall is gone at once."""
    differences = np.diff(floors.allocated)
    largest = -float(differences.min())
    least = max(LEAST_FALL_BYTES, _OF_LARGEST * largest)
    rows = np.flatnonzero(differences <= -least) + 1
    if len(rows) > _MOST_OF_ROWS * len(floors):
        return np.zeros(0, np.int64)  # batches of different lengths
    falls: list[int] = []
    start = 0
    for row in rows[-_MOST_FALLS:]:
        gathered = floors.allocated[start:row]
        low = int(np.argmin(gathered))
        rise = float(gathered[-1] - gathered[low])
        rises = int((np.diff(gathered[low:]) > 0).sum())
        if -differences[row - 1] >= _OF_RISE * rise and rises >= _LEAST_RISES:
            falls.append(int(row))
        start = int(row)
    return np.array(falls, np.int64)


def _rose(floors: Floors, samples: Rows, name: str) -> NDArray[np.int64] | None:
    """Of each row: 1 if a count has risen since the one before, 0 if not, -1 not known."""
    count = samples.numbers(name)
    known = ~np.isnan(count)
    if known.sum() < 2:
        return None
    count, time_ns = count[known], samples.time_ns[known]
    # The samples around the whole time from the end of one step to the end of the next.
    after = np.searchsorted(time_ns, floors.time_ns, side="left")
    before = np.searchsorted(time_ns, np.concatenate(([0], floors.time_ns[:-1])), "right") - 1
    is_seen = (before >= 0) & (after < len(time_ns))
    after, before = np.minimum(after, len(time_ns) - 1), np.maximum(before, 0)
    return np.where(is_seen, (count[after] > count[before]).astype(np.int64), -1)


def _sawtooth(
    floors: Floors, falls: NDArray[np.int64], chance: float, *, is_automatic: bool
) -> Sawtooth | None:
    sizes = floors.allocated[falls - 1] - floors.allocated[falls]
    steps = floors.step[falls]
    last = int(falls[-1])
    since = int(floors.step[-1] - steps[-1])
    gaps = np.diff(np.concatenate((floors.step[:1], steps))).tolist()
    if since > _STILL_DUE * max(1, *gaps):
        return None
    return Sawtooth(
        float(sizes.max()),
        max(float(floors.allocated[-1] - floors.allocated[last:].min()), 0.0),
        tuple(int(step) for step in steps),
        chance,
        int(statistics.median(gaps[1:])) if len(gaps) > 1 else None,
        is_automatic,
    )
