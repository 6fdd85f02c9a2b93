"""Memory of the training process on the host."""

from __future__ import annotations

import os
from typing import Final

from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN

_INTERVAL_NS: Final = 500_000_000
"""Reading a file releases the GIL, and getting it back costs the agent up to 5 ms."""


class HostCollector:
    """Resident memory from ``/proc/self/statm``; unknown on systems without it."""

    def __init__(self, clock: Clock, path: str = "/proc/self/statm") -> None:
        self._clock = clock
        self._path = path
        self._due_ns = clock.monotonic_ns()
        self._rss_bytes = UNKNOWN

    def rss_bytes(self) -> int:
        """Resident bytes, read at most twice a second."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _INTERVAL_NS
            self._rss_bytes = self._read()
        return self._rss_bytes

    def _read(self) -> int:
        # Opened each time: a descriptor kept open would be the parent's after a fork, and a job
        # that closes all descriptors would leave us reading, or closing, a file of its own.
        try:
            with open(self._path, "rb", buffering=0) as file:
                pages = file.read(128).split()
            return int(pages[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return UNKNOWN
