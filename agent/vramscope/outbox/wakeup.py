"""A flag that one thread waits for and any thread sets, also from inside a garbage collection."""

from __future__ import annotations

import threading


class Wakeup:
    """Like ``threading.Event`` that clears itself, and safe to set re-entrantly.

    ``Event.set`` takes a lock: set from a collection that interrupts another ``set`` on the same
    thread, it would wait for itself. A bare lock used as a binary semaphore has no such state.
    """

    def __init__(self) -> None:
        self._unset = threading.Lock()
        self._unset.acquire()

    def set(self) -> None:
        """Let the present or the next :meth:`wait` return. Never blocks."""
        try:
            self._unset.release()
        except RuntimeError:
            return  # it was set already

    def wait(self, timeout_s: float) -> bool:
        """Wait until set, clear, and return ``True``; ``False`` when the time is over."""
        return self._unset.acquire(timeout=max(0.0, timeout_s))
