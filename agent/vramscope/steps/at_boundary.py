"""What is done after the end of a step when somebody wants something, and what it costs when not.

Most steps end with nobody wanting anything. Each part keeps what is wanted of it in containers, and
one look tells whether all of these are empty; then nothing runs. Now and then all parts run in any
case, as some only want to know that steps go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from vramscope.sampling.clock import Clock

INTERVAL_NS: Final = 100_000_000
"""All parts run at the first end of a step after so long."""


class BoundaryPart(Protocol):
    """A part of the agent that works at the ends of steps."""

    @property
    def wanted(self) -> Sequence[object]:
        """Containers, always the same ones: there is something to do at the next end of a step
        when one of them is not empty."""
        ...

    @property
    def goes_on(self) -> bool:
        """Whether there is, without that, something to do at the next end: asked after this one."""
        ...

    def at_boundary(self, step: int) -> None:
        """A step has ended, on the training thread."""
        ...


class AtBoundary:
    """Called with the number of each step that has ended, on the training thread.

    Args:
        parts: in the order in which they run.
        at_last: called when they have run; may raise into the job.
        clock: says when all run in any case.
    """

    def __init__(
        self, parts: Sequence[BoundaryPart], at_last: Callable[[], None], clock: Clock
    ) -> None:
        self._parts = tuple(parts)
        self._wanted = tuple(each for part in parts for each in part.wanted)
        self._at_last = at_last
        self._clock = clock
        self._goes_on = False
        self._due_ns = 0

    def __call__(self, step: int) -> None:
        """A step has ended."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns and not self._goes_on and not any(self._wanted):
            return
        self._due_ns = now_ns + INTERVAL_NS
        self._goes_on = True  # also when one of them raises into the job, as Ctrl-C does
        for part in self._parts:
            part.at_boundary(step)
        self._goes_on = any(part.goes_on for part in self._parts)
        self._at_last()
