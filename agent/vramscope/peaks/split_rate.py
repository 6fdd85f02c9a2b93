"""Which steps are split into their parts, so that splitting costs no more than it may. Pure."""

from __future__ import annotations

import math
from collections import deque
from statistics import median_low
from typing import Final

_REMEMBERED: Final = 15
_EXPECTED_COST_NS: Final = 200_000
"""What splitting a step is taken to cost until it has been measured."""


class SplitRate:
    """Chooses every n-th step, n from what splitting costs and how long steps take.

    Args:
        budget: share of the step time that splitting may add on average.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._cost_ns = float(_EXPECTED_COST_NS)
        self._is_measured = False
        self._durations_ns: deque[int] = deque(maxlen=_REMEMBERED)
        self._since_split = 0
        self._interval = 1

    @property
    def interval(self) -> int:
        """Every how many steps one is split."""
        return self._interval

    def step_ended(self, duration_ns: int) -> None:
        """A step took this long."""
        self._durations_ns.append(duration_ns)
        self._since_split += 1
        if self._since_split >= self._interval:
            # Only when it matters: the median of a few is not free.
            self._choose()

    def is_due(self) -> bool:
        """Whether the step that begins now is split."""
        return bool(self._durations_ns) and self._since_split >= self._interval

    def was_split(self, cost_ns: int) -> None:
        """The step that ends now was split, at this cost."""
        # The first one pays for cold caches too; later ones tell what it costs.
        self._cost_ns += (cost_ns - self._cost_ns) * (0.25 if self._is_measured else 1.0)
        self._is_measured = True
        self._since_split = 0
        self._choose()

    def _choose(self) -> None:
        if self._durations_ns:
            allowed_ns = max(1.0, self._budget * median_low(self._durations_ns))
            self._interval = max(1, math.ceil(self._cost_ns / allowed_ns))
