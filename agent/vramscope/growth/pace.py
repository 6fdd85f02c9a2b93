"""When to look at what grows, when to search for what holds it, and when enough has been seen."""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.02
"""Part of the time from its begin on that all of it may take: CPU time of the training thread."""
PROMPT_NS: Final = 4_000_000
"""What the looks may take before that: a search waits until they are within the share as well."""
ANEW_NS: Final = 40_000_000
"""What they may take when they begin anew."""


class LookPace:
    """Decides at each step end whether there is time for a look, or for a search.

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
        self._look_ns = 0
        self._allowed_ns = 0
        self._floor_bytes: int | None = None
        self.steps = 0
        """Steps so far."""
        self.spent_ns = 0
        """What all of it has taken up to the last step."""

    @property
    def is_over(self) -> bool:
        """Whether it has gone on for long enough."""
        return self.steps >= self._max_steps

    def step_ended(self) -> None:
        """A step has ended."""
        self.steps += 1

    def may_look(self, now_ns: int) -> bool:
        """Whether there is time for a look at the end of this step."""
        if self.steps - self._last_step < self._every:
            return False
        allowed_ns = PROMPT_NS + SHARE * (now_ns - self._start_ns)
        return self.spent_ns + self._look_ns <= max(allowed_ns, self._allowed_ns)

    def has_risen(self, allocated_bytes: int) -> bool:
        """Whether there is more than at the last look."""
        return self._floor_bytes is None or allocated_bytes > self._floor_bytes

    def looked(self, allocated_bytes: int, took_ns: int) -> None:
        """A look was taken at the end of this step; the next one is expected to take as long."""
        self._last_step = self.steps
        self._floor_bytes = allocated_bytes
        self._look_ns = took_ns

    def begin_anew(self) -> None:
        """What was looked at is gone, and may go again soon: it must be seen before.

        So looks may come with every step from now on, and may take a little more than their share.
        """
        self._floor_bytes = None
        self._every = 1
        self._allowed_ns = self.spent_ns + ANEW_NS

    def left_ns(self, now_ns: int) -> int:
        """What a look and a search may take now, so that all of it is within the share."""
        return int(SHARE * (now_ns - self._start_ns)) - self.spent_ns - self._look_ns

    def owed_ns(self, now_ns: int) -> int:
        """How long to do nothing until all of it is within the share."""
        return max(0, round(self.spent_ns / SHARE) - (now_ns - self._start_ns))


def spread(looks: int, wanted: int) -> list[int]:
    """Numbers of some looks out of all, evenly apart: the first and the last among them."""
    if looks <= wanted:
        return list(range(looks))
    return [round(number * (looks - 1) / (wanted - 1)) for number in range(wanted)]
