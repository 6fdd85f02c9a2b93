"""What workers hold for themselves: shared pages count in part (the kernel's PSS).

A worker that was forked shares the pages of its parent until one of both writes to them, be it only
a reference count. Resident memory counts such a page in each process from the beginning, and does
not change when it becomes a copy; this does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from vramscope.collectors.data_workers import started_pids
from vramscope.collectors.proc_text import ProcText
from vramscope_protocol.columns import UNKNOWN

_PSS: Final = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)
_COST_SHARE: Final = 0.001
"""The kernel walks through all pages of a worker, 20 ms for a GiB: no more than this part of one
core."""


class WorkerShares:
    """Looks at one worker at each call, in rounds.

    Args:
        files: reads small files.
        pids: the processes that ``multiprocessing`` has started and not yet joined.
        proc: where the kernel lists processes.
        now_ns: a clock that does not go back.
        cpu_ns: CPU time of this thread.
    """

    def __init__(
        self,
        files: ProcText,
        pids: Callable[[], list[int]] | None = None,
        proc: str = "/proc",
        now_ns: Callable[[], int] = time.monotonic_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._files = files
        self._pids = pids or started_pids
        self._proc = proc
        self._now_ns = now_ns
        self._cpu_ns = cpu_ns
        self._to_read: list[int] = []
        self._total = 0
        self._latest = UNKNOWN
        self._due_ns = 0

    def read(self) -> tuple[int]:
        """Go on with the round; the sum of the last one that was completed."""
        if self._now_ns() < self._due_ns:
            return (self._latest,)
        start_ns = self._cpu_ns()
        if not self._to_read:
            self._to_read = self._pids()
            self._total = 0
        if self._to_read:
            text = self._files.read(f"{self._proc}/{self._to_read.pop()}/smaps_rollup")
            found = None if text is None else _PSS.search(text)
            if text is not None and found is None:
                self._total = UNKNOWN  # a kernel that does not tell
            elif found is not None and self._total != UNKNOWN:
                self._total += int(found[1]) * 1024
        if not self._to_read:
            self._latest = self._total
        self._due_ns = self._now_ns() + round((self._cpu_ns() - start_ns) / _COST_SHARE)
        return (self._latest,)
