"""Small files of the kernel, read whole."""

from __future__ import annotations

import os
import time
from typing import Final

from vramscope.collectors.self_cost import ReleasedTime

_MAX_BYTES: Final = 1 << 16


class ProcText:
    """Reads files of ``/proc`` and ``/sys``; each read gives the GIL away, which is counted.

    Args:
        released: where the time of the reads is counted.
    """

    def __init__(self, released: ReleasedTime | None = None) -> None:
        self._released = released or ReleasedTime()

    def read(self, path: str) -> bytes | None:
        """The contents, ``None`` if there are none to be had."""
        # Opened each time: a descriptor kept open would be the parent's after a fork, and a job
        # that closes all descriptors would leave us reading, or closing, a file of its own.
        start_ns = time.perf_counter_ns()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.read(descriptor, _MAX_BYTES)
            finally:
                os.close(descriptor)
        except OSError:
            return None
        finally:
            self._released.add(start_ns)

    def read_number(self, path: str) -> int | None:
        """A file that holds one number; ``None`` if it holds none."""
        text = self.read(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None
