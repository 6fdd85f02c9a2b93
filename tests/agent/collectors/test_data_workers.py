"""Memory of the DataLoader's workers, a few at a time."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from vramscope.collectors.data_workers import DataWorkers, started_pids
from vramscope.collectors.proc_text import ProcText


def machine(folder: Path, pids: list[int]) -> DataWorkers:
    for pid in pids:
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "status").write_text(
            "VmRSS:\t 100 kB\nRssShmem:\t 30 kB\nThreads:\t2\n"
        )
    return DataWorkers(ProcText(), lambda: list(pids), str(folder))


def test_the_sums_over_all_workers(tmp_path: Path) -> None:
    assert machine(tmp_path, [7, 8, 9]).read() == (3, 3 * 102400, 3 * 30720)


def test_many_workers_are_read_in_several_turns(tmp_path: Path) -> None:
    workers = machine(tmp_path, list(range(100, 120)))
    first = [workers.read() for _ in range(2)]
    assert all(each.workers < 0 for each in first)  # not known yet, and not 0
    assert workers.read().workers == 20
    assert workers.read().workers == 20  # the next round has begun


def test_a_worker_that_has_ended_is_none(tmp_path: Path) -> None:
    workers = machine(tmp_path, [7, 8])
    (tmp_path / "8" / "status").unlink()
    assert workers.read() == (1, 102400, 30720)


def test_without_workers_there_are_none(tmp_path: Path) -> None:
    assert DataWorkers(ProcText(), list, str(tmp_path)).read() == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_process_of_multiprocessing_is_found() -> None:
    context = multiprocessing.get_context("spawn")
    goes_on = context.Event()
    process = context.Process(target=goes_on.wait, args=(60,))
    process.start()
    try:
        assert process.pid in started_pids()
        assert os.getpid() not in started_pids()
        memory = DataWorkers(ProcText()).read()
        assert memory.workers >= 1
        assert memory.rss_bytes > 0
    finally:
        goes_on.set()
        process.join()
    assert process.pid not in started_pids()
