"""A clock that stands still until the test moves it."""

from __future__ import annotations

from vramscope.sampling.clock import Clock

START_NS = 1_700_000_000_000_000_000


class FakeClock(Clock):
    """Epoch and monotonic time move together, by :meth:`advance` only."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1e9)

    def time_ns(self) -> int:
        return START_NS + self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns
