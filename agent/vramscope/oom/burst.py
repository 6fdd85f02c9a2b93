"""How much is written down of each time out of memory: all of the first, little of thousands."""

from __future__ import annotations

from typing import Final, Literal

Detail = Literal["full", "light"]

FULL_AT_FIRST: Final = 3
"""So many in full, however close together."""
FIRST_PAUSE_S: Final = 10.0
"""Then at least this apart, and with each one twice as long as before."""
LONGEST_PAUSE_S: Final = 600.0
LIGHT_PAUSE_S: Final = 0.005
"""Not even a light report more often than this: a search for a batch size raises hundreds a second
on a small model. The next one says how many there were, and so does the last, when all is quiet."""


class Burst:
    """Decides for one time out of memory after the other. Called under a lock."""

    def __init__(self) -> None:
        self._fulls = 0
        self._next_full_s = 0.0
        self._next_light_s = 0.0
        self.skipped = 0
        """Times of which nothing was written since the last one of which something was."""

    def decide(self, now_s: float) -> Detail | None:
        """What to write; ``None`` is nothing but to count.

        Args:
            now_s: of a clock that does not go back.
        """
        if self._fulls < FULL_AT_FIRST or now_s >= self._next_full_s:
            self._fulls += 1
            doublings = min(self._fulls - FULL_AT_FIRST, 16)
            pause_s = min(FIRST_PAUSE_S * 2.0 ** max(0, doublings), LONGEST_PAUSE_S)
            self._next_full_s = now_s + pause_s
            return "full"
        if now_s >= self._next_light_s:
            self._next_light_s = now_s + LIGHT_PAUSE_S
            return "light"
        self.skipped += 1
        return None

    def take_skipped(self) -> int:
        """How many were skipped, for the report that tells it."""
        skipped, self.skipped = self.skipped, 0
        return skipped
