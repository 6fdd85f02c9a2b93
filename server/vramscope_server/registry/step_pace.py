"""How far a rank is in its training, and how fast it goes on. Pure."""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

_KEPT: Final = 16
"""Advances that a pace is taken from: of some seconds, as rows come in batches."""
_MAX_AGE_S: Final = 2.0
"""A rank that is silent for longer may stand still: nothing is added for that time."""


class RankPace(NamedTuple):
    """Where a rank is known to be."""

    step: int
    """Optimizer steps finished, as far as it has told."""
    rate_hz: float | None
    """Steps a second; none is known yet."""
    age_s: float
    """Time since it told."""

    @property
    def reached(self) -> int:
        """Step that it has reached meanwhile, by its pace."""
        return self.step + math.ceil((self.rate_hz or 0.0) * min(max(self.age_s, 0.0), _MAX_AGE_S))


class StepPace:
    """Takes the newest step of each batch of rows of one life."""

    def __init__(self) -> None:
        self._advances: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._received_ns = 0

    def take(self, step: int, time_ns: int, received_ns: int) -> None:
        """A row says how many steps were finished at a time of the rank's own clock.

        Rows of steps and of samples come by turns, each lot with a last row of its own: one may
        be of before the newest that is known, and tells nothing new then.
        """
        last = self._advances[-1] if self._advances else None
        if last is not None and step <= last[0] and time_ns <= last[1]:
            return
        self._received_ns = received_ns
        if last is not None and step == last[0]:
            return
        if last is not None and (step < last[0] or time_ns < last[1]):
            self._advances.clear()  # counted anew, or the clock was set back
        self._advances.append((step, time_ns))

    def pace(self, now_ns: int) -> RankPace | None:
        """What is known now; none before the first row."""
        if not self._advances:
            return None
        (first_step, first_ns), (step, time_ns) = self._advances[0], self._advances[-1]
        seconds = (time_ns - first_ns) / 1e9
        rate_hz = (step - first_step) / seconds if seconds > 0 else None
        return RankPace(step, rate_hz, (now_ns - self._received_ns) / 1e9)
