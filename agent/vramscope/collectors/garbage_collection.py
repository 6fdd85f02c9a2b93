"""Python's garbage collector as it works: how often, how long, what it found."""

from __future__ import annotations

import gc
from collections import deque
from time import perf_counter_ns
from typing import Any, Final

from msgspec import defstruct, field

_OLDEST: Final = 2
MAX_MARKS: Final = 16_384
"""Begins and ends between two readings, 5 MB of them; of more the oldest are not counted."""

NAMES: Final = (
    "gc.collections",
    "gc.full_collections",
    "gc.pause_us",
    "gc.full_pause_us",
    "gc.longest_pause_us",
    "gc.collected",
    "gc.uncollectable",
)


class GarbageCollection:
    """Is called by the collector at each start and end, on whichever thread it runs. A collector.

    What is called runs no Python code. There a signal that came during the collection would be
    handled, and what its handler raises - for Ctrl-C, KeyboardInterrupt - the collector swallows:
    the job would never get it.
    """

    names = NAMES

    def __init__(self) -> None:
        self._start_ns: int | None = None
        self._values = [0] * len(NAMES)
        self._marks: deque[Any] = deque(maxlen=MAX_MARKS)
        # Constructed by C code, which calls the others: the clock, and append with the new mark.
        self._callback = defstruct(
            "GarbageCollectionMark",
            [
                ("phase", str),
                ("info", dict),
                ("time_ns", int, field(default_factory=perf_counter_ns)),
            ],
            namespace={"__post_init__": self._marks.append},
            gc=False,
        )

    def install(self) -> None:
        """Listen from now on."""
        gc.callbacks.append(self._callback)

    def remove(self) -> None:
        """Leave the collector as it was."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more."""
        self.remove()

    def read(self) -> list[int]:
        """Totals since :meth:`install`; the longest pause is that since the last reading."""
        if len(self._marks) == MAX_MARKS:
            self._start_ns = None  # its end may be among those that fell out
        while self._marks:
            self._count(self._marks.popleft())
        values = self._values[:]
        self._values[4] = 0
        return values

    def _count(self, mark: Any) -> None:
        if mark.phase == "start":
            self._start_ns = mark.time_ns
            return
        if self._start_ns is None:  # it began before we came
            return
        spent_us = (mark.time_ns - self._start_ns) // 1000
        self._start_ns = None
        values = self._values
        info = mark.info
        values[0] += 1
        values[2] += spent_us
        if info.get("generation") == _OLDEST:
            values[1] += 1
            values[3] += spent_us
        values[4] = max(values[4], spent_us)
        values[5] += info.get("collected", 0)
        values[6] += info.get("uncollectable", 0)
