"""One stretch of recording: how it was asked for, and how it goes."""

from __future__ import annotations

import time
from collections import deque

from msgspec import Struct, field

from vramscope.history.host_memory import HostMemoryBudget
from vramscope.history.taking import Taking
from vramscope_protocol.codec import MAX_SNAPSHOT_STEPS
from vramscope_protocol.parameters import HistoryParams


def _marks() -> deque[tuple[int, int]]:
    return deque(maxlen=MAX_SNAPSHOT_STEPS)


class Window(Struct):
    """A recording that we have started."""

    params: HistoryParams
    max_entries: int
    budget: HostMemoryBudget
    origin: str
    issued_by: str
    gives_way: bool = False
    """Whether it ends when another one is asked for."""
    steps_done: int = 0
    marks: deque[tuple[int, int]] = field(default_factory=_marks)
    """Number and end (us since the epoch) of the latest steps."""
    ended: str = ""
    """Why it is over without a snapshot, in words."""
    taking: Taking | None = None
    """The snapshot that it ended with."""

    def mark_step(self, step: int) -> None:
        """A step has ended."""
        self.steps_done += 1
        self.marks.append((step, time.time_ns() // 1000))

    @property
    def has_stacks(self) -> bool:
        """Whether Python stacks are recorded."""
        return self.params.stacks or self.params.mode == "state"

    @property
    def has_all_steps(self) -> bool:
        """Whether it has gone on for as many steps as were asked for."""
        return self.params.steps is not None and self.steps_done >= self.params.steps

    @property
    def progress(self) -> str:
        """How far it is: "12 of 50 steps"."""
        if self.params.steps is None:
            return f"{self.steps_done} steps"
        return f"{self.steps_done} of {self.params.steps} steps"
