"""Whether memory at the ends of steps rises with each of them, and fast: then rows leave sooner.

It says nothing of a leak. The server asks a rank that grows like this, and its steps may be short.
"""

from __future__ import annotations

import math
from typing import Final

LEAST_STEPS: Final = 24
LEAST_BYTES: Final = 17 << 20
"""What the server's judges need at least to ask about growth within so few steps."""
TOLD_STEPS: Final = 54
"""What they need to tell of it while nothing else is known."""


class EvenRise:
    """Told what is allocated at each step's end; asked by another thread."""

    def __init__(self) -> None:
        self._last_bytes: float = math.inf
        self._first_bytes = self._steps = 0
        self._wanted = LEAST_STEPS

    def step_ended(self, allocated_bytes: int) -> None:
        """A step has ended, on the training thread."""
        if allocated_bytes > self._last_bytes:
            self._steps += 1
        else:
            self._first_bytes, self._steps, self._wanted = allocated_bytes, 0, LEAST_STEPS
        self._last_bytes = allocated_bytes

    def take(self) -> bool:
        """Whether it rises like this; of each rise twice."""
        if not 0 < self._wanted <= self._steps:
            return False
        if self._last_bytes - self._first_bytes < LEAST_BYTES:
            return False
        self._wanted = TOLD_STEPS if self._steps < TOLD_STEPS else 0
        return True
