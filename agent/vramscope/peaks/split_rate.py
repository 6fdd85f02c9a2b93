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

    def step_ended(self, duration_ns: int, split_cost_ns: int | None = None) -> None:
        """A step took this long.

        Args:
            duration_ns: without what splitting it cost.
            split_cost_ns: that, if it was split.
        """
        self._durations_ns.append(duration_ns)
        if split_cost_ns is None:
            self._since_split += 1
            if self._since_split + 1 < self._interval:
                return  # the median of a few is not free, and does not matter yet
        else:
            # The first one pays for cold caches too; later ones tell what it costs.
            share = 0.25 if self._is_measured else 1.0
            self._cost_ns += (split_cost_ns - self._cost_ns) * share
            self._is_measured = True
            self._since_split = 0
        self._choose()

    def is_due(self) -> bool:
        """Whether the step that begins now is split."""
        return bool(self._durations_ns) and self._since_split + 1 >= self._interval

    def _choose(self) -> None:
        allowed_ns = max(1.0, self._budget * median_low(self._durations_ns))
        self._interval = max(1, math.ceil(self._cost_ns / allowed_ns))
