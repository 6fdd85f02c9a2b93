"""Time for rows (epoch, never backwards) and for waiting (monotonic)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

_elapsed_ns: Final[Callable[[], int]] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic_ns
)
"""Nanoseconds since boot; counts a suspend where the system can (Linux)."""


class Clock:
    """Epoch time anchored once at attach, so that a clock set back cannot disorder the rows."""

    def __init__(self) -> None:
        self._anchor_ns = time.time_ns() - _elapsed_ns()

    def time_ns(self) -> int:
        """Nanoseconds since the epoch, by the wall clock as it stood at attach."""
        return self._anchor_ns + _elapsed_ns()

    # Nanoseconds of the clock that waits and deadlines go by; the function itself, as it is asked
    # a dozen times a step.
    monotonic_ns = staticmethod(time.monotonic_ns)


class Deadlines:
    """When the next turn of a loop is due. Turns that were missed are skipped, not caught up.

    Args:
        interval_s: seconds between two turns.
        now_ns: monotonic time; the first turn is due at once.
    """

    def __init__(self, interval_s: float, now_ns: int) -> None:
        self._interval_ns = round(interval_s * 1e9)
        self._due_ns = now_ns

    @property
    def interval_s(self) -> float:
        """Seconds between two turns."""
        return self._interval_ns / 1e9

    def set_interval_s(self, interval_s: float) -> None:
        """Change the pace from the next turn on."""
        self._interval_ns = round(interval_s * 1e9)

    def wait_s(self, now_ns: int) -> float:
        """Seconds until the next turn is due, 0 if it is due."""
        return max(0, self._due_ns - now_ns) / 1e9

    def is_due(self, now_ns: int) -> bool:
        """Whether the next turn is due."""
        return now_ns >= self._due_ns

    def take(self, now_ns: int) -> int:
        """Take the turn that is due and return how many others were missed before ``now_ns``."""
        missed = max(0, now_ns - self._due_ns) // self._interval_ns
        self._due_ns += (missed + 1) * self._interval_ns
        return missed
