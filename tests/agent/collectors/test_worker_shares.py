"""What workers hold for themselves, one of them at a time and within a share of the time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.worker_shares import WorkerShares
from vramscope_protocol.columns import UNKNOWN

ROLLUP = "00400000-7fff [rollup]\nRss:\t 900 kB\nPss:   100 kB\nPss_Anon:\t 90 kB\n"


class Machine:
    """A machine with workers, whose files take a time to read that the test sets."""

    def __init__(self, folder: Path, pids: list[int]) -> None:
        self.folder, self.pids = folder, pids
        self.now_ns = self.cpu_ns = 0
        self.took_ns = 0
        for pid in pids:
            (folder / str(pid)).mkdir()
            (folder / str(pid) / "smaps_rollup").write_text(ROLLUP)
        self.shares = WorkerShares(
            ProcText(), lambda: list(self.pids), str(folder), lambda: self.now_ns, self.cpu
        )

    def cpu(self) -> int:
        self.cpu_ns += self.took_ns
        return self.cpu_ns

    def read(self) -> int:
        self.now_ns += 10**9
        return self.shares.read()[0]


def test_a_sum_is_told_when_all_have_been_looked_at(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8, 9])
    assert [machine.read() for _ in range(3)] == [UNKNOWN, UNKNOWN, 3 * 102400]
    (tmp_path / "8" / "smaps_rollup").write_text(ROLLUP.replace("100 kB", "300 kB"))
    assert [machine.read() for _ in range(3)][-1] == 5 * 102400


def test_a_worker_that_has_ended_is_left_out_and_no_workers_are_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8])
    (tmp_path / "8" / "smaps_rollup").unlink()
    assert [machine.read() for _ in range(2)][-1] == 102400
    machine.pids = []
    assert machine.read() == 0


def test_a_kernel_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7, 8])
    (tmp_path / "8" / "smaps_rollup").write_text("Rss:\t 900 kB\n")
    assert [machine.read() for _ in range(4)] == [UNKNOWN] * 4


def test_large_workers_are_looked_at_less_often(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [7])
    machine.took_ns = 5_000_000
    assert machine.read() == 102400
    (tmp_path / "7" / "smaps_rollup").write_text(ROLLUP.replace("100 kB", "300 kB"))
    machine.took_ns = 0
    assert [machine.read() for _ in range(4)] == [102400] * 4
    assert [machine.read() for _ in range(3)][-1] == 307200


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_kernel_tells_it() -> None:
    shares = WorkerShares(ProcText(), lambda: [os.getpid()])
    assert shares.read()[0] > 1 << 20
