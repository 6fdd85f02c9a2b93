"""When to look at what grows, and when enough has been seen."""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.02
"""Part of the training thread's time that the looks may take, over the time of all of them."""
PROMPT_NS: Final = 2_000_000
"""What they may take before that."""
ANEW_NS: Final = 40_000_000
"""What they may take when they begin anew."""


class LookPace:
    """Decides at each step end whether to look.

    A look is wanted when allocated memory has risen since the last one: growth may come with every
    step, or with every evaluation only.

    Args:
        every: least number of steps between two looks.
        max_steps: gives up after so many.
        now_ns: the time.
    """

    def __init__(self, every: int, max_steps: int, now_ns: int) -> None:
        self._every = every
        self._max_steps = max_steps
        self._start_ns = now_ns
        self._last_step = 0
        self._allowed_ns = 0
        self._floor_bytes: int | None = None
        self.steps = 0
        """Steps so far."""
        self.spent_ns = 0
        """What the looks have taken."""

    @property
    def is_over(self) -> bool:
        """Whether it has gone on for long enough."""
        return self.steps >= self._max_steps

    def step_ended(self, allocated_bytes: int, now_ns: int) -> bool:
        """A step has ended; whether to look now."""
        self.steps += 1
        if self.steps - self._last_step < self._every or not self._may_spend(now_ns):
            return False
        return self._floor_bytes is None or allocated_bytes > self._floor_bytes

    def looked(self, allocated_bytes: int, took_ns: int) -> None:
        """A look was taken at the end of this step."""
        self._last_step = self.steps
        self._floor_bytes = allocated_bytes
        self.spent_ns += took_ns

    def begin_anew(self) -> None:
        """What was looked at is gone, and may go again soon: it must be seen before.

        So looks may come with every step from now on, and may take a little more than their share.
        """
        self._floor_bytes = None
        self._every = 1
        self._allowed_ns = self.spent_ns + ANEW_NS

    def may_take(self, expected_ns: int, now_ns: int) -> bool:
        """Whether something that takes so long would be within the share."""
        allowed_ns = PROMPT_NS + SHARE * (now_ns - self._start_ns)
        return self.spent_ns + expected_ns <= max(allowed_ns, self._allowed_ns)

    def _may_spend(self, now_ns: int) -> bool:
        return self.may_take(0, now_ns)


def spread(looks: int, wanted: int) -> list[int]:
    """Numbers of some looks out of all, evenly apart: the first and the last among them."""
    if looks <= wanted:
        return list(range(looks))
    return [round(number * (looks - 1) / (wanted - 1)) for number in range(wanted)]
