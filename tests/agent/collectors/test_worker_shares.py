"""What workers hold for themselves, one of them at a time and within a share of the time."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.worker_shares import WorkerShares
from vramscope_protocol.columns import UNKNOWN

ROLLUP = "00400000-7fff [rollup]\nRss:\t 900 kB\nPss:   {} kB\nPss_Anon:\t 90 kB\n"
KIB = 1024


class Machine:
    """A machine with workers, whose files take a time to read that the test sets."""

    def __init__(self, folder: Path, pids: list[int]) -> None:
        self.folder, self.pids = folder, pids
        self.now_ns = self.cpu_ns = 0
        self.took_ns = 0
        for pid in pids:
            (folder / str(pid)).mkdir()
            self.has(pid, 100)
        self.shares = WorkerShares(
            ProcText(), lambda: list(self.pids), str(folder), lambda: self.now_ns, self.cpu
        )

    def has(self, pid: int, kib: int, mapped_mib: int = 0) -> None:
        """What a worker has, and how much was mapped for it until now, page by page."""
        (self.folder / str(pid) / "smaps_rollup").write_text(ROLLUP.format(kib))
        faults = (mapped_mib << 20) // os.sysconf("SC_PAGE_SIZE")
        stat = f"{pid} (a) b) S 1 2 3 0 -1 4194304 {faults} 0 0\n"
        (self.folder / str(pid) / "stat").write_text(stat)

    def cpu(self) -> int:
        self.cpu_ns += self.took_ns
        return self.cpu_ns

    def read(self) -> int:
        self.now_ns += 10**9
        return self.shares.read()[0]


def test_a_sum_is_told_when_all_have_been_looked_at(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8, 9])
    assert [machine.read() for _ in range(3)] == [UNKNOWN, UNKNOWN, 300 * KIB]


def test_where_most_was_mapped_is_looked_at_next(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8, 9])
    assert [machine.read() for _ in range(4)][-1] == 300 * KIB
    machine.has(7, 1100, mapped_mib=40)
    machine.has(8, 2100, mapped_mib=80)
    machine.has(9, 5100, mapped_mib=20)  # less than is worth a look
    assert [machine.read() for _ in range(4)] == [2300 * KIB, 3300 * KIB, 3300 * KIB, 3300 * KIB]


def test_where_nothing_is_mapped_nothing_is_looked_at_for_a_minute(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7])
    assert machine.read() == 100 * KIB
    machine.has(7, 300)
    assert [machine.read() for _ in range(59)] == [100 * KIB] * 59
    assert machine.read() == 300 * KIB


def test_a_worker_that_has_ended_is_left_out_and_no_workers_are_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8])
    (tmp_path / "8" / "smaps_rollup").unlink()
    (tmp_path / "8" / "stat").unlink()
    assert [machine.read() for _ in range(2)][-1] == 100 * KIB
    machine.pids = []
    assert machine.read() == 0


def test_others_in_their_place_are_looked_at_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8])
    machine.pids = [7]
    assert machine.read() == 100 * KIB
    machine.has(8, 700)
    machine.pids = [8]
    assert machine.read() == 700 * KIB


def test_a_kernel_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8])
    (tmp_path / "8" / "smaps_rollup").write_text("Rss:\t 900 kB\n")
    assert [machine.read() for _ in range(4)] == [UNKNOWN] * 4


def test_looks_stay_within_their_share_of_the_time(tmp_path: Path) -> None:
    """Each takes 20 ms here: some seconds apart from what was saved, then one in 20 seconds."""
    machine = Machine(tmp_path, [7])
    machine.took_ns = 20_000_000
    found: list[int] = []
    for second in range(1, 200):
        machine.has(7, second, mapped_mib=40 * second)
        found.append(machine.read())
    looked = [before != after for before, after in pairwise([0, *found])]
    assert [second for second, is_look in enumerate(looked) if is_look][:4] == [0, 10, 20, 30]
    assert 6 + 7 <= sum(looked) <= 6 + 10
    # A worker that was let be for long may be looked at more often again, but not without end.
    machine.now_ns += 10**12
    for second in range(200, 300):
        machine.has(7, second, mapped_mib=40 * second)
        found.append(machine.read())
    assert 6 + 4 <= len(set(found[199:])) <= 6 + 6


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_kernel_tells_it() -> None:
    shares = WorkerShares(ProcText(), lambda: [os.getpid()])
    assert shares.read()[0] > 1 << 20
