"""How long a search may still take."""

from __future__ import annotations

import time
from typing import Final

WALL_FACTOR: Final = 3.0
"""Where other programs take the processor away, the job waits no longer than so many times, ..."""
LEAST_WALL_S: Final = 0.1
"""... or than this: a short search would hardly ever come to its end there."""


class TimeBox:
    """Time of the calling thread's own.

    Args:
        limit_s: CPU time that it may take from now on.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._wall_s = max(WALL_FACTOR * limit_s, LEAST_WALL_S)
        self._start_s = time.perf_counter()
        self._start_cpu_s = time.thread_time()

    @property
    def left_s(self) -> float:
        """CPU time that is left; 0 if it is over."""
        if time.perf_counter() - self._start_s > self._wall_s:
            return 0.0
        return max(0.0, self._limit_s - (time.thread_time() - self._start_cpu_s))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.left_s <= 0.0
