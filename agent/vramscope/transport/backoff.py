"""How long to wait before the next attempt: doubling delays with jitter, pure."""

from __future__ import annotations

from random import Random


class Backoff:
    """Delays of a series of failures.

    Args:
        first_s: centre of the first delay.
        longest_s: no delay is longer.
        random: source of the jitter. Never the module-level one: drawing from it would change
            the random numbers that the training script sees.
    """

    def __init__(
        self, first_s: float = 0.5, longest_s: float = 15.0, random: Random | None = None
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random if random is not None else Random()
        self.failures = 0

    def next_s(self) -> float:
        """Delay after one more failure: half to all of the doubled delay."""
        # The exponent is capped so that weeks of failures cannot overflow a float.
        full_s = min(self._longest_s, self._first_s * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return full_s * (0.5 + 0.5 * self._random.random())

    def reset(self) -> None:
        """Start over: the last attempt was of use."""
        self.failures = 0
