from __future__ import annotations

import _thread
import errno
import gc
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.oom import oom_observer
from vramscope.oom.burst import FULL_AT_FIRST
from vramscope.oom.oom_observer import MAX_LIGHT, QUIET_S, OomObserver
from vramscope.oom.report import AUTOGRAD_THREAD, ReportMaker, Sources
from vramscope.oom.report_folder import ReportFile, ReportFolder
from vramscope.oom.report_writer import ReportWriter
from vramscope_protocol.messages import Event, OomBegin

LINES = [{"file": "train.py", "line": 7, "function": "step"}]
"""What an exception came through."""


class Rig:
    """An observer and everything that it gives away."""

    def __init__(self, sources: Sources, spool: Path) -> None:
        self.events: list[Event] = []
        self.shipped: list[tuple[OomBegin, dict[str, Any]]] = []
        self.files: list[ReportFile | None] = []
        self.samples = 0
        self.now_s = 100.0
        self.folder = ReportFolder(str(spool))
        self.writer = ReportWriter(self.folder)
        self.clock = FakeClock()
        self.observer = OomObserver(
            ReportMaker(sources),
            self.writer,
            clock=self.clock,
            emit=self.events.append,
            ship=self._ship,
            sample_now=self._sample_now,
            monotonic_s=lambda: self.now_s,
        )

    def run_out(self, times: int = 1, seconds: float = 0.01) -> None:
        for _ in range(times):
            self.now_s += seconds
            self.clock.advance(seconds)
            self.observer.out_of_memory(0, 20, 900, 3)

    def drain(self) -> None:
        """Wait until everything is written."""
        self.writer.close(10)

    def on_disk(self) -> list[dict[str, Any]]:
        paths = sorted(Path(self.folder.path).glob("oom-*.json"))
        return [json.loads(path.read_bytes()) for path in paths]

    def told(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def _ship(self, begin: OomBegin, file: ReportFile | None, data: bytes) -> None:
        content = data if file is None else Path(file.path).read_bytes()
        assert begin.wire_bytes == len(content)
        self.shipped.append((begin, json.loads(content)))
        self.files.append(file)

    def _sample_now(self, timeout_s: float) -> None:
        self.samples += 1


@pytest.fixture
def rig(sources: Callable[..., Sources], tmp_path: Path) -> Iterator[Rig]:
    made = Rig(sources(), tmp_path / "spool")
    yield made
    made.drain()


def test_a_whole_report_lies_there_when_the_call_returns(rig: Rig) -> None:
    rig.run_out()
    (report,) = rig.on_disk()
    assert (report["complete"], report["detail"]) == (True, "full")
    assert (report["segment_bytes"], report["step"]) == (20, 7)
    rig.drain()
    ((begin, sent),) = rig.shipped
    assert sent == report
    assert (begin.id, begin.run, begin.step) == (report["id"], report["run"], 7)
    # By which another process may deliver it, if this one is killed.
    assert begin.proof == report["proof"]
    assert len(begin.proof) == 64
    (event,) = rig.told("oom")
    assert event.data["report"] == report["id"]
    assert event.text == "out of memory in eval"
    assert rig.samples == 1


def test_killed_in_between_there_is_what_was_known_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*arguments: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(ReportMaker, "complete", die)
    with pytest.raises(SystemExit):
        rig.run_out()
    rig.drain()
    (report,) = rig.on_disk()
    assert report["complete"] is False
    assert report["threads"]
    assert rig.shipped == []


def test_of_thousands_in_a_row_the_first_and_the_last_stay_and_all_are_counted(rig: Rig) -> None:
    times = 2000
    rig.run_out(times, seconds=0.002)
    reports = rig.on_disk()
    assert [each["detail"] for each in reports] == ["full"] * FULL_AT_FIRST + ["light"] * MAX_LIGHT
    assert len(rig.told("oom")) == FULL_AT_FIRST
    rig.now_s += QUIET_S
    rig.observer.poll()
    rig.observer.poll()
    rig.drain()
    assert len(rig.shipped) == FULL_AT_FIRST + MAX_LIGHT
    last = rig.told("oom")[-1]
    assert len(rig.told("oom")) == FULL_AT_FIRST + 1
    assert last.data["times"] == times - FULL_AT_FIRST
    assert last.data["report"] == reports[-1]["id"]
    assert last.text == f"ran out of memory {times - FULL_AT_FIRST} more times in a row"
    rig.observer.at_boundary(8)
    (recovered,) = rig.told("oom_recovered")
    assert recovered.data["reports"] == [each["id"] for each in reports]


def test_nothing_is_told_of_a_burst_before_it_is_over(rig: Rig) -> None:
    rig.run_out(FULL_AT_FIRST + 2)
    rig.now_s += QUIET_S / 2
    rig.observer.poll()
    assert len(rig.told("oom")) == FULL_AT_FIRST


def test_the_next_step_end_makes_them_recovered(rig: Rig) -> None:
    rig.observer.at_boundary(7)
    assert rig.events == []
    rig.run_out(2)
    rig.observer.at_boundary(8)
    rig.observer.at_boundary(9)
    (event,) = rig.told("oom_recovered")
    assert event.step == 8
    assert event.data["reports"] == [each["id"] for each in rig.on_disk()]
    assert not rig.observer.has_open


def test_what_ends_the_job_is_told_with_its_message(rig: Rig) -> None:
    rig.observer.ended_by("nothing ran out", LINES)
    assert rig.events == []
    rig.run_out()
    rig.observer.ended_by("CUDA out of memory.", LINES)
    (event,) = rig.told("oom_fatal")
    assert event.data == {"report": rig.on_disk()[0]["id"], "message": "CUDA out of memory."}
    assert len(rig.on_disk()) == 1


@pytest.mark.parametrize("seconds", [0.01, 0.001])
def test_what_ends_the_job_is_whole_however_many_there_were(rig: Rig, seconds: float) -> None:
    rig.run_out(FULL_AT_FIRST + 6, seconds)
    rig.observer.ended_by("CUDA out of memory.", LINES)
    last = rig.on_disk()[-1]
    assert (last["detail"], last["complete"]) == ("full", True)
    assert last["message"] == "CUDA out of memory."
    assert last["threads"][0]["frames"] == LINES
    (event,) = rig.told("oom_fatal")
    assert event.data["report"] == last["id"]


def test_what_pytorch_does_not_tell_is_written_down_too(rig: Rig) -> None:
    rig.observer.noticed("exception", "CUDA error: out of memory", LINES)
    rig.clock.advance(1)
    rig.observer.noticed("counter", "times out of memory: 3", None)
    by_exception, by_counter = rig.on_disk()
    assert (by_exception["source"], by_exception["detail"]) == ("exception", "full")
    assert by_exception["message"] == "CUDA error: out of memory"
    assert by_exception["threads"][0]["raised"]
    assert by_exception["threads"][0]["frames"] == LINES
    assert (by_counter["source"], by_counter["detail"]) == ("counter", "light")
    assert not by_counter["threads"][0]["raised"]


def test_threads_that_fail_again_and_again_do_not_take_the_jobs_time(rig: Rig) -> None:
    for _ in range(FULL_AT_FIRST + 20):
        rig.clock.advance(1)
        rig.observer.noticed("host", "DefaultCPUAllocator: can't allocate memory", LINES)
    details = [report["detail"] for report in rig.on_disk()]
    assert details == ["full"] * FULL_AT_FIRST + ["light"] * MAX_LIGHT
    # The end is told in full in any case.
    rig.observer.ended_by("DefaultCPUAllocator: can't allocate memory", LINES)
    assert rig.on_disk()[-1]["detail"] == "full"


def test_asked_for_it_is_no_time_out_of_memory(rig: Rig) -> None:
    identity = rig.observer.asked("r0")
    (report,) = rig.on_disk()
    assert (report["id"], report["source"], report["linked_to"]) == (identity, "asked", "r0")
    assert rig.events == []
    assert not rig.observer.has_open
    rig.drain()
    assert rig.shipped[0][0].linked_to == "r0"


def test_on_a_full_disk_it_is_delivered_from_memory(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vramscope.oom.report_folder.os.write", full)
    rig.run_out()
    rig.drain()
    assert rig.on_disk() == []
    ((_, report),) = rig.shipped
    assert report["complete"]
    assert rig.files == [None]
    assert "No space left" in rig.told("oom")[0].data["not_written"]


def test_a_disk_that_hangs_does_not_hold_the_job(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    fsync = os.fsync

    def hang(descriptor: int) -> None:
        go_on.wait(60)
        fsync(descriptor)

    monkeypatch.setattr("vramscope.oom.report_folder.os.fsync", hang)
    monkeypatch.setattr(oom_observer, "BUDGET_S", 0.0)
    monkeypatch.setattr(oom_observer, "WRITE_S", 0.0)
    rig.run_out()
    assert not go_on.is_set()
    go_on.set()
    rig.drain()
    assert len(rig.shipped) == 1


def test_several_threads_run_out_at_once(rig: Rig) -> None:
    threads = [threading.Thread(target=rig.run_out) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rig.drain()
    rig.observer.settle()
    told = sum(event.data.get("times", 1) for event in rig.told("oom"))
    assert told == 8


def test_a_thread_that_python_did_not_start_is_autograds(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vramscope.oom.report._is_in_backward", lambda: True)
    is_over = threading.Event()

    def run() -> None:
        threading.current_thread()  # whoever asks makes a stand-in, which is called Dummy-1
        rig.run_out()
        is_over.set()

    _thread.start_new_thread(run, ())
    assert is_over.wait(30)
    (report,) = rig.on_disk()
    assert (report["thread"], report["part"]) == (AUTOGRAD_THREAD, "backward")
    assert report["threads"][0]["raised"]
    assert "run_out" in [line["function"] for line in report["threads"][0]["frames"]]


def test_nothing_is_collected_in_the_middle_of_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    complete = ReportMaker.complete

    def look(*arguments: Any) -> None:
        seen.append(gc.isenabled())
        complete(*arguments)

    monkeypatch.setattr(ReportMaker, "complete", look)
    gc.enable()
    rig.run_out()
    assert seen == [False]
    assert gc.isenabled()
