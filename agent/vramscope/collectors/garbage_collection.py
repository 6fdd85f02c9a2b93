"""Python's garbage collector as it works: how often, how long, what it found."""

from __future__ import annotations

import gc
from time import perf_counter_ns
from typing import Any, Final

_OLDEST: Final = 2

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

    A collection never begins inside another one, so these plain numbers need no lock.
    """

    names = NAMES

    def __init__(self) -> None:
        self._start_ns: int | None = None
        self._is_watching = False
        self._values = [0] * len(NAMES)
        # Bound once: the list of callbacks knows it by identity.
        self._callback = self._called

    def install(self) -> None:
        """Listen from now on."""
        self._is_watching = True
        gc.callbacks.append(self._callback)

    def remove(self) -> None:
        """Leave the collector as it was."""
        self._is_watching = False
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more."""
        self._is_watching = False

    def read(self) -> list[int]:
        """Totals since :meth:`install`; the longest pause is that since the last reading."""
        values = self._values[:]
        self._values[4] = 0
        return values

    def _called(self, phase: str, info: dict[str, Any]) -> None:
        if not self._is_watching:
            return
        if phase == "start":
            self._start_ns = perf_counter_ns()
            return
        if self._start_ns is None:  # it began before we came
            return
        spent_us = (perf_counter_ns() - self._start_ns) // 1000
        self._start_ns = None
        values = self._values
        values[0] += 1
        values[2] += spent_us
        if info.get("generation") == _OLDEST:
            values[1] += 1
            values[3] += spent_us
        values[4] = max(values[4], spent_us)
        values[5] += info.get("collected", 0)
        values[6] += info.get("uncollectable", 0)
