"""What watching costs: the CPU time of the agent's threads and of its hooks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SelfCost:
    """CPU time that the agent has used in this process since attach.

    Args:
        other_cpu_ns: CPU time of threads that keep their own account (the transport's).
    """

    def __init__(self, other_cpu_ns: Callable[[], int]) -> None:
        self._other_cpu_ns = other_cpu_ns
        self._threads: dict[int, tuple[int, int]] = {}
        self._ended_ns = 0
        self._inline_ns = 0

    def register_thread(self) -> None:
        """Count the calling thread until it calls :meth:`unregister_thread` at its end."""
        get_clock_id = getattr(time, "pthread_getcpuclockid", None)
        if get_clock_id is not None:
            ident = threading.get_ident()
            self._threads[ident] = (get_clock_id(ident), time.thread_time_ns())

    def unregister_thread(self) -> None:
        """Settle the account of the calling thread."""
        # The clock of a thread that has ended is an error, or already another thread's.
        account = self._threads.pop(threading.get_ident(), None)
        if account is not None:
            self._ended_ns += time.thread_time_ns() - account[1]

    def add_inline_ns(self, cpu_ns: int) -> None:
        """Count time that a hook took on a thread of the job."""
        self._inline_ns += cpu_ns

    def cpu_ns(self) -> int:
        """CPU time used so far."""
        total_ns = self._ended_ns + self._inline_ns + self._other_cpu_ns()
        for clock_id, start_ns in list(self._threads.values()):
            try:
                total_ns += time.clock_gettime_ns(clock_id) - start_ns
            except OSError:
                continue  # the thread has just ended; its account is settled in a moment
        return total_ns
