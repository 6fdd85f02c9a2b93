"""Whether memory at the ends of a rank's steps begins to rise fast: then judges are asked sooner.

It says nothing of a leak, that is for the judges: it is what they need at least to speak of the
fastest growth that they know.
"""

from __future__ import annotations

import statistics
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.floors import WARM_UP_ROWS
from vramscope_analysis.diagnosis.trend import (
    EVEN,
    FAST_GROWTH_BYTES,
    FAST_WINDOW,
    FIRST_WINDOW,
    PARTS,
    kept_level,
)

_LEAST_BYTES: Final = FAST_GROWTH_BYTES * (PARTS - 1) / PARTS
_STARTS: Final = np.arange(PARTS) * (FAST_WINDOW // PARTS)
_TIMES: Final = 2
"""Of one rise it is told with so many batches of steps: judges may need a few steps more."""
_LASTED: Final = FIRST_WINDOW - FAST_WINDOW + 5
"""... and once more so many steps later, when it is told of though nothing else is known."""


class RisingFloor:
    """Takes what was allocated at the ends of steps, in their order. Cheap: on the event loop."""

    def __init__(self) -> None:
        self._left_out = WARM_UP_ROWS
        self._last: NDArray[np.float64] = np.zeros(0)
        self._told = self._lasted = 0

    def take(self, allocated: NDArray[Any]) -> bool:
        """Whether it rises since these steps, or since those before, or has so for long enough.

        Args:
            allocated: bytes at the ends of further steps.
        """
        taken = allocated[self._left_out :].astype(np.float64)
        self._left_out = max(self._left_out - len(allocated), 0)
        self._last = np.concatenate([self._last, taken])[-FAST_WINDOW:]
        if not self._is_rising():
            self._told = self._lasted = 0
            return False
        before, self._lasted = self._lasted, self._lasted + (len(taken) if self._told else 0)
        self._told += 1
        return self._told <= _TIMES or before < _LASTED <= self._lasted

    def _is_rising(self) -> bool:
        last = self._last
        # What a job at rest is asked, and no more.
        if len(last) < FAST_WINDOW or not last[-1] - last[0] >= _LEAST_BYTES:
            return False
        level = kept_level(last)
        rises: list[float] = np.diff(level[_STARTS]).tolist()
        median = statistics.median(rises)
        return median * (PARTS - 1) >= _LEAST_BYTES and min(rises) >= EVEN * median
