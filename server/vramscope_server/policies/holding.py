"""Since when a condition holds without a break: on one rank, or of a run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vramscope_server.policies.definition import Hold, SeriesCondition
from vramscope_server.policies.series_values import SeriesValues

GAP_NS: Final = 60 * 10**9
"""After so long without a row it is not known whether it held all the time."""


@dataclass(slots=True)
class Holding:
    """A condition over time. Times are those of whoever measured them."""

    since_ns: int | None = None
    """None: it does not hold."""
    since_step: int = 0
    """Steps that were finished when it began to."""
    now_ns: int = 0
    now_step: int = 0
    value: int | float | None = None
    """The newest one."""
    kind: str = ""
    """Whether it is about samples or steps."""

    @property
    def held_s(self) -> float | None:
        """For how long it has held."""
        return None if self.since_ns is None else (self.now_ns - self.since_ns) / 1e9

    @property
    def held_steps(self) -> int | None:
        """For how many steps it has held."""
        return None if self.since_ns is None else self.now_step - self.since_step

    def is_met(self, hold: Hold | None) -> bool:
        """Whether it has held for long enough."""
        held_s, held_steps = self.held_s, self.held_steps
        if held_s is None or held_steps is None:
            return False
        if hold is None:
            return True
        if hold.steps is not None:
            return held_steps >= hold.steps
        return hold.seconds is None or held_s >= hold.seconds

    def take(self, batch: SeriesValues, condition: SeriesCondition) -> None:
        """Go on with the next values of a rank."""
        is_broken = batch.time_ns[0] - self.now_ns > GAP_NS or batch.time_ns[0] < self.now_ns
        if is_broken or batch.steps[0] < self.now_step or batch.kind != self.kind:
            self.since_ns, self.kind = None, batch.kind
        place = _begins_at(batch, condition)
        if place is None:
            self.since_ns = None
        elif place or self.since_ns is None:
            self.since_ns = batch.time_ns[place]
            # The row of a step is about that step: one less was finished when it began.
            self.since_step = batch.steps[place] - (batch.kind == "step")
        self.now_ns, self.now_step = batch.time_ns[-1], batch.steps[-1]
        self.value = batch.values[-1]

    def note(self, holds: bool, now_ns: int, step: int) -> None:
        """Go on with something that is looked at now and then."""
        if not holds:
            self.since_ns = None
        elif self.since_ns is None or step < self.since_step or now_ns < self.since_ns:
            self.since_ns, self.since_step = now_ns, step
        self.now_ns, self.now_step = now_ns, step


def _begins_at(batch: SeriesValues, condition: SeriesCondition) -> int | None:
    """From which value on it holds up to the last one; None if it does not hold there."""
    bound, is_above = condition.value, condition.op == ">"
    if batch.lowest > bound if is_above else batch.highest < bound:
        return 0
    if batch.highest <= bound if is_above else batch.lowest >= bound:
        return None
    for place in range(len(batch.values) - 1, -1, -1):
        value = batch.values[place]
        if not (value > bound if is_above else value < bound):
            return place + 1 if place + 1 < len(batch.values) else None
    return 0
