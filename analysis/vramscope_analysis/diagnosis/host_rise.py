"""Whether a number of the host rises steadily: by its floors, not by its peaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Numbers, Rows

WARM_UP_STEPS: Final = 20
WARM_UP_S: Final = 3.0
"""Libraries, workers and first batches come within this time."""
SHORTEST_S: Final = 12.0
"""Garbage of the young generations comes and goes within less."""
BINS: Final = 8
MOST_ROWS: Final = 500
MIN_READINGS: Final = 6
"""Different values: the host is looked at once a second."""
WINDOWS: Final = (1.0, 0.25, 0.0625)
"""Parts of the time, up to now, that are looked at: growth may have begun lately."""
MIN_BYTES: Final = 64 * MIB
MIN_SHARE: Final = 0.03
SLOWING: Final = 0.5
"""Growth whose second half is below this part of its first half is filling up, and will end."""
_LARGEST_FALL: Final = 0.1


@dataclass(frozen=True)
class HostRise:
    """Growth that goes on.

    Args:
        grown_bytes: from the first floor to the last.
        seconds: how long that took.
        steps: steps that were done meanwhile; 0 where steps are not known.
        since_step: step at the beginning; None is not known.
        start_ns: time of the beginning.
    """

    grown_bytes: int
    seconds: float
    steps: int
    since_step: int | None
    start_ns: int

    @property
    def bytes_per_s(self) -> float:
        """How fast."""
        return self.grown_bytes / self.seconds

    @property
    def bytes_per_step(self) -> float | None:
        """How fast by steps; None where steps are not known."""
        return self.grown_bytes / self.steps if self.steps else None


def thinned(rows: Rows, *names: str) -> Rows:
    """A few hundred of the rows, evenly: the host is looked at once a second at most."""
    stride = max(len(rows) // MOST_ROWS, 1)
    # From the end: the newest row is always one of them.
    chosen = slice((len(rows) - 1) % stride if len(rows) else 0, None, stride)
    return Rows(
        rows.time_ns[chosen],
        {name: rows.columns[name][chosen] for name in names if name in rows.columns},
        None if rows.number is None else rows.number[chosen],
    )


def host_rise(
    rows: Rows, values: Numbers, min_bytes: int = MIN_BYTES, *, may_slow: bool = False
) -> HostRise | None:
    """The longest steady rise up to now; None if there is none.

    Args:
        rows: samples.
        values: one for each of them, NaN where it is not known.
        min_bytes: less growth than this says nothing.
        may_slow: whether it counts, too, while it becomes slower and will end.
    """
    known = np.flatnonzero(np.isfinite(values) & _is_warm(rows))
    if len(known) < MIN_READINGS:
        return None
    time_s = (rows.time_ns[known] - rows.time_ns[known[0]]) / 1e9
    found = values[known]
    for part in WINDOWS:
        from_s = time_s[-1] * (1 - part)
        if time_s[-1] - from_s < SHORTEST_S:
            break
        chosen = time_s >= from_s
        grown = _grown(time_s[chosen], found[chosen], min_bytes, may_slow=may_slow)
        if grown is not None:
            return _rise(rows, known[chosen], grown)
    return None


def _is_warm(rows: Rows) -> NDArray[np.bool_]:
    if not len(rows):
        return np.zeros(0, np.bool_)
    warm: NDArray[np.bool_] = rows.time_ns >= rows.time_ns[0] + int(WARM_UP_S * 1e9)
    if rows.number is not None and rows.number[-1] > rows.number[0]:
        warm &= rows.number >= rows.number[0] + WARM_UP_STEPS
    return warm


def _grown(time_s: Numbers, values: Numbers, min_bytes: int, *, may_slow: bool) -> int | None:
    """By how much the floors have risen; None if they have not, or not steadily."""
    least = max(min_bytes, MIN_SHARE * values[0])
    if values[-1] - values.min() < least or len(np.unique(values)) < MIN_READINGS:
        return None
    lasted_s = time_s[-1] - time_s[0]
    places = np.minimum((BINS * (time_s - time_s[0]) / lasted_s).astype(np.int64), BINS - 1)
    if len(np.unique(places)) < BINS:
        return None  # a gap
    floors = np.array([values[places == place].min() for place in range(BINS)])
    changes = np.diff(floors)
    grown = float(floors[-1] - floors[0])
    if grown < least or (changes > 0).sum() < BINS - 2 or changes.min() < -_LARGEST_FALL * grown:
        return None
    if changes.max() > 0.5 * grown:
        return None  # it came at once
    if may_slow:
        return int(grown)
    middle = BINS // 2
    first, second = floors[middle] - floors[0], floors[-1] - floors[middle]
    # There is one change more in the first half.
    if second < SLOWING * first * (BINS - 1 - middle) / middle:
        return None
    return int(grown)


def _rise(rows: Rows, chosen: NDArray[np.intp], grown: int) -> HostRise:
    first, last = int(chosen[0]), int(chosen[-1])
    steps = 0 if rows.number is None else int(rows.number[last] - rows.number[first])
    return HostRise(
        grown_bytes=grown,
        seconds=float(rows.time_ns[last] - rows.time_ns[first]) / 1e9,
        steps=steps,
        since_step=None if rows.number is None or not steps else int(rows.number[first]),
        start_ns=int(rows.time_ns[first]),
    )
