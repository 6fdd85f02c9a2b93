"""Memory of the training process on the host, and of what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vramscope.collectors.cgroup import MemoryCgroup
from vramscope.collectors.data_workers import DataWorkers
from vramscope.collectors.pinned_memory import PinnedMemoryReader
from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.process_status import read_process_status
from vramscope.collectors.self_cost import ReleasedTime
from vramscope.collectors.shared_memory import SharedMemoryReader
from vramscope.collectors.worker_shares import WorkerShares
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN

NAMES: Final = (
    "host.rss_bytes",
    "host.shared_bytes",
    "host.swap_bytes",
    "host.locked_bytes",
    "host.os_pinned_bytes",
    "host.threads",
    "host.anonymous_bytes",
    "host.pinned_bytes",
    "host.pinned_reserved_bytes",
    "host.limit_bytes",
    "host.limit_used_bytes",
    "host.workers",
    "host.workers_rss_bytes",
    "host.workers_shared_bytes",
    "host.workers_pss_bytes",
    "host.shm_used_bytes",
    "host.shm_size_bytes",
    "host.shm_torch_bytes",
)

_SECOND_NS: Final = 1_000_000_000


class _Reading:
    """Some of the values, read once in an interval."""

    def __init__(self, read: Callable[[], tuple[int, ...]], first: int, interval_s: int) -> None:
        self.read = read
        self.first = first
        self.interval_ns = interval_s * _SECOND_NS
        self.due_ns = 0


class HostCollector:
    """Reads a little at each sample. A collector.

    Reading a file releases the GIL, and getting it back may take a switch interval: so a sample
    makes one reading at most, the one that is most overdue. At a lower rate all of them are
    taken less often, and cost less.

    Args:
        clock: says what is due.
        released: where the time of calls that release the GIL is counted.
        proc: where the kernel describes this process.
        pinned: reads PyTorch's pinned memory.
        workers: reads the workers' memory.
        shared_memory: reads shared memory files.
    """

    names = NAMES

    def __init__(
        self,
        clock: Clock,
        released: ReleasedTime | None = None,
        *,
        proc: str = "/proc/self",
        pinned: PinnedMemoryReader | None = None,
        workers: DataWorkers | None = None,
        shared_memory: SharedMemoryReader | None = None,
    ) -> None:
        self._clock = clock
        self._files = ProcText(released)
        self._proc = proc
        self._pinned = pinned or PinnedMemoryReader()
        self._cgroup = MemoryCgroup(self._files, proc)
        self._workers = workers or DataWorkers(self._files)
        self._shares = WorkerShares(self._files)
        self._shared_memory = shared_memory or SharedMemoryReader(released)
        self._values = [UNKNOWN] * len(NAMES)
        self._readings = [
            _Reading(self._read_process, 0, 1),
            _Reading(self._read_pinned, 7, 1),
            _Reading(self._cgroup.read, 9, 2),
            _Reading(self._workers.read, 11, 5),
            _Reading(self._shares.read, 14, 1),
            _Reading(self._shared_memory.read, 15, 10),
        ]
        self._due_ns = 0

    def read(self) -> list[int]:
        """The values as last read; the first time all are read."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns:
            return self._values
        if self._due_ns:
            self._take(min(self._readings, key=_due), now_ns)
        else:
            for reading in self._readings:
                self._take(reading, now_ns)
        self._due_ns = min(map(_due, self._readings))
        return self._values

    def _take(self, reading: _Reading, now_ns: int) -> None:
        reading.due_ns = now_ns + reading.interval_ns
        values = reading.read()
        self._values[reading.first : reading.first + len(values)] = values

    def _read_process(self) -> tuple[int, ...]:
        status = read_process_status(self._files, f"{self._proc}/status")
        return (
            status.rss_bytes,
            status.shared_bytes,
            status.swap_bytes,
            status.locked_bytes,
            status.pinned_bytes,
            status.threads,
            status.anonymous_bytes,
        )

    def _read_pinned(self) -> tuple[int, ...]:
        pinned = self._pinned.read()
        return pinned.used_bytes, pinned.reserved_bytes


def _due(reading: _Reading) -> int:
    return reading.due_ns
