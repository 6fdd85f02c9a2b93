"""What workers hold for themselves: shared pages count in part (the kernel's PSS).

A worker that was forked shares the pages of its parent until one of both writes to them, be it only
a reference count. Resident memory counts such a page in each process from the beginning, and does
not change when it becomes a copy; this does.
"""

from __future__ import annotations

import os
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
core, ..."""
_SAVED_NS: Final = 100_000_000
"""... and no more than this beyond it, of what was not used before. A job begins with it: what
workers copy they copy in their first minute."""
_AT_ONCE_SHARE: Final = 0.002
"""Until the next look, too, it is no more than this part: samples are to go on meanwhile."""
_FAULTED_BYTES: Final = 32 << 20
"""A worker is looked at again when so much has been mapped anew for it, ..."""
_LONGEST_NS: Final = 60 * 10**9
"""... or after such a time."""
_FAULTS_FIELD: Final = 7
"""Minor faults: of the fields of ``stat`` behind the name, which may hold anything."""


class _Worker:
    """One worker, as it was when it was looked at last."""

    __slots__ = ("bytes", "faults", "read_ns")

    def __init__(self) -> None:
        self.bytes: int | None = None
        """None: not yet looked at; 0: it has just ended."""
        self.faults = 0
        self.read_ns = 0


class WorkerShares:
    """Looks at one worker at each call: at that for which most has been mapped since.

    A page that becomes a worker's own is a minor fault, which is cheap to ask for.

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
        self._workers: dict[int, _Worker] = {}
        self._page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._saved_ns = float(_SAVED_NS)
        self._since_ns = now_ns()
        self._due_ns = 0

    def read(self) -> tuple[int]:
        """The sum of what each was found to have; unknown until all have been looked at."""
        now_ns, start_ns = self._now_ns(), self._cpu_ns()
        self._saved_ns += (now_ns - self._since_ns) * _COST_SHARE
        self._saved_ns, self._since_ns = min(self._saved_ns, _SAVED_NS), now_ns
        known = self._workers
        self._workers = {pid: known.get(pid) or _Worker() for pid in self._pids()}
        if self._workers and self._saved_ns >= 0 and now_ns >= self._due_ns:
            self._look(now_ns)
            took_ns = self._cpu_ns() - start_ns
            self._saved_ns -= took_ns
            self._due_ns = now_ns + round(took_ns / _AT_ONCE_SHARE)
        total = 0
        for worker in self._workers.values():
            if worker.bytes is None or worker.bytes == UNKNOWN:
                return (UNKNOWN,)
            total += worker.bytes
        return (total,)

    def _look(self, now_ns: int) -> None:
        """At one of those that have not been looked at, else where there is most to see."""
        pid = next((each for each, worker in self._workers.items() if worker.bytes is None), None)
        if pid is None:
            pid = self._changed(now_ns)
        if pid is None:
            return
        worker = self._workers[pid]
        worker.faults, worker.read_ns = self._faults(pid), now_ns
        text = self._files.read(f"{self._proc}/{pid}/smaps_rollup")
        found = None if text is None else _PSS.search(text)
        if text is None:
            worker.bytes = 0
        else:
            # A kernel may not tell.
            worker.bytes = UNKNOWN if found is None else int(found[1]) * 1024

    def _changed(self, now_ns: int) -> int | None:
        most, changed = _FAULTED_BYTES, None
        for pid, worker in self._workers.items():
            mapped = (self._faults(pid) - worker.faults) * self._page_bytes
            if mapped >= most or (changed is None and now_ns - worker.read_ns >= _LONGEST_NS):
                most, changed = max(mapped, most), pid
        return changed

    def _faults(self, pid: int) -> int:
        text = self._files.read(f"{self._proc}/{pid}/stat")
        fields = (text or b"").rpartition(b")")[2].split()
        return int(fields[_FAULTS_FIELD]) if len(fields) > _FAULTS_FIELD else 0
