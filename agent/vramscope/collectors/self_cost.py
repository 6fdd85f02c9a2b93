"""What watching costs: the CPU time of the agent's threads and of its hooks, and the GIL's time.

How long the sampler holds the GIL cannot be asked. A turn of it takes the GIL once at its start
and gives it away only in calls that say so: into the driver, and into the kernel for a file. So the
time of a turn without the time of those calls is how long it held the GIL; when the machine stops
the thread in between, that counts too, for then the job waits just as long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Literal

_WAKE_NS: Final = 100_000
"""CPU time that waking up takes at most, before a thread's own code runs."""


class CpuMeter:
    """CPU time of one piece of work of the calling thread, also where that clock is coarse.

    Some sandboxes count a thread's CPU time in ticks of 10 ms. A timer that wakes together with
    the tick is then charged a whole one. So the work never counts as more than the time it took.
    """

    def __init__(self) -> None:
        self._cpu_ns = time.thread_time_ns()
        self._start_ns = time.perf_counter_ns()
        self.wall_ns = 0
        """Time from the last begin to the last end."""

    def begin(self) -> None:
        """The thread is awake: work begins."""
        self._start_ns = time.perf_counter_ns()

    def end(self) -> int:
        """CPU time in nanoseconds since the last end, waking up included."""
        cpu_ns = time.thread_time_ns()
        spent_ns = cpu_ns - self._cpu_ns
        self._cpu_ns = cpu_ns
        self.wall_ns = time.perf_counter_ns() - self._start_ns
        return min(spent_ns, self.wall_ns + _WAKE_NS)


class ReleasedTime:
    """Time that the sampler thread spent in calls that give the GIL away."""

    def __init__(self) -> None:
        self.ns = 0
        self._thread: int | None = None

    def follow_this_thread(self) -> None:
        """Count what this thread does, and no other."""
        self._thread = threading.get_ident()

    def add(self, start_ns: int) -> None:
        """Count a call that began at ``start_ns`` (``time.perf_counter_ns``) and is over."""
        if threading.get_ident() == self._thread:
            self.ns += time.perf_counter_ns() - start_ns


class SelfCost:
    """CPU time that the agent has used in this process since attach, by part.

    Args:
        other_cpu_ns: CPU time of threads that keep their own account (the transport's).
    """

    def __init__(self, other_cpu_ns: Callable[[], int]) -> None:
        self._other_cpu_ns = other_cpu_ns
        self.released = ReleasedTime()
        self.turns = 0
        """Times that the sampler thread woke up."""
        self.held_ns = 0
        """Time that these turns took, without that in ``released``."""
        # Each number is written by one thread: adding to a shared one could lose an addition.
        self._parts_ns: dict[str, int] = {"sampler": 0, "hooks": 0}

    def add_sampler_ns(self, cpu_ns: int, held_ns: int = 0) -> None:
        """Count a turn of the sampler: its CPU time, and how long it held the GIL."""
        self.turns += 1
        self.held_ns += held_ns
        self._parts_ns["sampler"] += cpu_ns

    def add_hook_ns(self, cpu_ns: int) -> None:
        """Count what a hook took on a thread of the job."""
        self._parts_ns["hooks"] += cpu_ns

    @contextmanager
    def part(self, name: str, within: Literal["sampler", "hooks"] | None = None) -> Generator[None]:
        """Count the CPU time of this block, on this thread, as a part of its own.

        Args:
            name: what it is for: "map", "census", "snapshots", ...; of one thread only.
            within: the part that this block is counted in as well, which is then relieved of it.
        """
        start_ns = time.thread_time_ns()
        try:
            yield
        finally:
            spent_ns = time.thread_time_ns() - start_ns
            self._parts_ns[name] = self._parts_ns.get(name, 0) + spent_ns
            if within is not None:
                self._parts_ns[within] -= spent_ns

    def parts_us(self) -> dict[str, int]:
        """CPU time used so far, by part."""
        parts = {**self._parts_ns, "transport": self._other_cpu_ns()}
        # In the middle of a turn its own part may already be relieved of what is not yet counted.
        return {name: max(0, spent_ns // 1000) for name, spent_ns in parts.items()}

    def cpu_ns(self) -> int:
        """CPU time used so far."""
        return sum(self._parts_ns.values()) + self._other_cpu_ns()
