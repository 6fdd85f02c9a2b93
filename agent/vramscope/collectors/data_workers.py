"""Memory of the processes that this one started with ``multiprocessing``: DataLoader workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.process_status import ProcessStatus, read_process_status
from vramscope_protocol.columns import UNKNOWN

_READ_AT_ONCE: Final = 8
"""Workers looked at in one turn: a job may have hundreds."""


class WorkersMemory(NamedTuple):
    """Sums over all workers; shared memory that several map is counted once for each."""

    workers: int = UNKNOWN
    rss_bytes: int = UNKNOWN
    shared_bytes: int = UNKNOWN


class DataWorkers:
    """Looks at the workers in rounds, a few at each call.

    Args:
        files: reads small files.
        pids: the processes that ``multiprocessing`` has started and not yet joined.
        proc: where the kernel lists processes.
    """

    def __init__(
        self,
        files: ProcText,
        pids: Callable[[], list[int]] | None = None,
        proc: str = "/proc",
    ) -> None:
        self._files = files
        self._pids = pids or started_pids
        self._proc = proc
        self._to_read: list[int] = []
        self._found: list[ProcessStatus] = []
        self._latest = WorkersMemory()

    def read(self) -> WorkersMemory:
        """Go on with the round; the sums of the last round that was completed."""
        if not self._to_read:
            self._to_read = self._pids()
            self._found = []
        now, self._to_read = self._to_read[:_READ_AT_ONCE], self._to_read[_READ_AT_ONCE:]
        for pid in now:
            status = read_process_status(self._files, f"{self._proc}/{pid}/status")
            if status.threads != UNKNOWN:  # else it has just ended
                self._found.append(status)
        if not self._to_read:
            self._latest = WorkersMemory(
                len(self._found),
                _sum(status.rss_bytes for status in self._found),
                _sum(status.shared_bytes for status in self._found),
            )
        return self._latest


def started_pids() -> list[int]:
    """Pids from ``multiprocessing``'s own list, without joining any, which its function does."""
    module: Any = sys.modules.get("multiprocessing.process")
    children: Iterable[Any] = getattr(module, "_children", ())
    # Copied in one step: other threads start and join processes meanwhile.
    pids = [getattr(child, "pid", None) for child in list(children)]
    return [pid for pid in pids if isinstance(pid, int)]


def _sum(parts: Iterable[int]) -> int:
    """Total of the parts; unknown as soon as one part is."""
    total = 0
    for part in parts:
        if part == UNKNOWN:
            # A process that has ended and was not waited for has no memory, and says nothing.
            continue
        total += part
    return total
