"""What watching costs: the CPU time of the agent's threads and of its hooks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

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

    def begin(self) -> None:
        """The thread is awake: work begins."""
        self._start_ns = time.perf_counter_ns()

    def end(self) -> int:
        """CPU time in nanoseconds since the last end, waking up included."""
        cpu_ns = time.thread_time_ns()
        spent_ns = cpu_ns - self._cpu_ns
        self._cpu_ns = cpu_ns
        return min(spent_ns, time.perf_counter_ns() - self._start_ns + _WAKE_NS)


class SelfCost:
    """CPU time that the agent has used in this process since attach.

    Args:
        other_cpu_ns: CPU time of threads that keep their own account (the transport's).
    """

    def __init__(self, other_cpu_ns: Callable[[], int]) -> None:
        self._other_cpu_ns = other_cpu_ns
        # One number for each writing thread: adding to a shared one could lose an addition.
        self._sampler_ns = 0
        self._hooks_ns = 0

    def add_sampler_ns(self, cpu_ns: int) -> None:
        """Count a turn of the sampler."""
        self._sampler_ns += cpu_ns

    def add_hook_ns(self, cpu_ns: int) -> None:
        """Count what a hook took on a thread of the job."""
        self._hooks_ns += cpu_ns

    def cpu_ns(self) -> int:
        """CPU time used so far."""
        return self._sampler_ns + self._hooks_ns + self._other_cpu_ns()
