"""The pieces together, in a job on an emulated device."""

from __future__ import annotations

import gc
import json
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.agent.test_observer import Watch  # noqa: E402
from vramscope.oom import trampoline  # noqa: E402
from vramscope.oom.report_folder import ReportFolder, file_name  # noqa: E402
from vramscope_protocol.messages import Event, OomBegin  # noqa: E402

pytestmark = pytest.mark.torch

MIB = 1 << 20
CAPACITY_BYTES = 64 * MIB


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Watch]:
    """A watched job with 64 MiB."""
    watch = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path), rate_hz=100.0)
    watch.observer.start()
    yield watch
    watch.observer.stop(5)


def run_out() -> Exception:
    """Take more than there is; what the job gets."""

    def step() -> None:
        kept = []
        while True:
            kept.append(torch.zeros(4 * MIB))

    try:
        step()
    except torch.cuda.OutOfMemoryError as error:
        # Not by pytest's: what it keeps would be a cycle with the error's frames.
        error.__traceback__ = None
        found: Exception = error
        return found
    raise AssertionError("there was enough")


def reports(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_bytes()) for p in sorted(tmp_path.glob("ooms/oom-*.json"))]


def told(watch: Watch, kind: str) -> list[Event]:
    return [m for m in watch.outbox.messages if isinstance(m, Event) and m.kind == kind]


def test_the_job_gets_its_own_error_and_its_memory_back(job: Watch, tmp_path: Path) -> None:
    was_on = gc.isenabled()
    gc.disable()
    try:
        error = run_out()
        assert type(error) is torch.cuda.OutOfMemoryError
        assert error.__cause__ is None
        assert error.__context__ is None
        assert str(error).startswith("CUDA out of memory. Tried to allocate")
        del error
        assert torch.cuda.memory_allocated() == 0
    finally:
        if was_on:
            gc.enable()
    (report,) = reports(tmp_path)
    assert report["complete"]
    assert report["largest"][0]["holder"]["chain"][0] == "kept"
    assert report["garbage_bytes"] == 0
    assert report["samples"]["time_ns"]


def test_a_step_that_ends_makes_it_recovered_and_its_exception_would_end_it(
    job: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "__excepthook__", lambda *arguments: None)
    module = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    run_out()
    module(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    assert [event.step for event in told(job, "oom_recovered")] == [1]
    error = run_out()
    sys.excepthook(type(error), error, None)
    (fatal,) = told(job, "oom_fatal")
    assert fatal.data["report"] == reports(tmp_path)[-1]["id"]
    assert fatal.data["message"] == str(error)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_libraries_that_ask_the_driver_themselves_are_seen_as_they_end_a_thread(
    job: Watch, tmp_path: Path
) -> None:
    def fail() -> None:
        raise RuntimeError("CUDA error: out of memory")

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    (report,) = reports(tmp_path)
    assert (report["source"], report["thread"]) == ("exception", "worker")
    assert told(job, "oom_fatal") == []


def test_after_a_detach_and_in_a_child_nothing_is_written(tmp_path: Path) -> None:
    watch = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path))
    watch.observer.start()
    hooks = sys.excepthook
    watch.observer.stop(5)
    assert sys.excepthook is not hooks
    trampoline._out_of_memory(0, 1, 2, 3)
    assert reports(tmp_path) == []
    second = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path))
    second.observer.start()
    second.observer.forget_after_fork()
    trampoline._out_of_memory(0, 1, 2, 3)
    assert reports(tmp_path) == []
    second.observer.stop(5)


def test_what_was_delivered_goes_and_what_was_not_stays(job: Watch, tmp_path: Path) -> None:
    run_out()
    shipment = job.shipped.get(timeout=10)
    assert isinstance(shipment.begin, OomBegin)
    assert shipment.over is not None
    shipment.over("no server")
    assert len(reports(tmp_path)) == 1
    run_out()
    delivered = job.shipped.get(timeout=10)
    assert delivered.over is not None
    delivered.over("")
    assert [each["id"] for each in reports(tmp_path)] == [shipment.begin.id]


def test_what_a_killed_process_left_is_delivered(job: Watch, tmp_path: Path) -> None:
    left = {"format": "vramscope-oom", "id": "r0", "run": "other", "rank": 1, "time_ns": 5}
    folder = ReportFolder(str(tmp_path))
    folder.write(file_name(5, 1), json.dumps(left).encode(), sync=False).let_go()
    job.observer.ship_left_reports()
    begin = job.shipped.get(timeout=10).begin
    assert isinstance(begin, OomBegin)
    assert (begin.run, begin.rank) == ("other", 1)
    with pytest.raises(queue.Empty):
        job.shipped.get_nowait()


def test_requests_that_are_turned_down_at_once_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "throw_on_cudamalloc_oom:True")
    watch = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path), rate_hz=100.0)
    if "num_oom_rejections" not in (watch.observer.__dict__["_device"].memory_stats() or {}):
        watch.observer.stop(5)
        pytest.skip("this release cannot turn requests down")
    watch.observer.start()
    look: Callable[[float], bool] = watch.observer.__dict__["_sampler"].sample_now
    assert look(10)
    run_out()
    assert look(10)
    assert look(10)
    watch.observer.stop(5)
    (report,) = reports(tmp_path)
    assert report["source"] == "counter"
    assert "turned requests down" in report["message"]


def test_switched_off_nothing_is_written_and_nothing_of_ours_is_there(tmp_path: Path) -> None:
    hooks = sys.excepthook, threading.excepthook
    watch = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path), oom_reports=False)
    watch.observer.start()
    assert (sys.excepthook, threading.excepthook) == hooks
    assert "oom_report" not in watch.observer.commands()
    run_out()
    assert watch.observer.__dict__["_sampler"].sample_now(10)
    watch.observer.stop(5)
    assert reports(tmp_path) == []


@pytest.mark.parametrize("is_on", [True, False])
def test_rows_are_kept_only_for_reports_that_may_come(tmp_path: Path, is_on: bool) -> None:
    watch = Watch(emulate=True, capacity=CAPACITY_BYTES, spool_dir=str(tmp_path), oom_reports=is_on)
    watch.observer.start()
    watch.observer.mark_step()
    watch.observer.mark_step()
    assert watch.observer.__dict__["_sampler"].sample_now(10)
    watch.observer.stop(5)
    kept = watch.observer.__dict__["_oom"]._rows
    for kind in ("sample", "step"):
        sent = [row["time_ns"] for row in watch.outbox.rows(kind)]
        assert sent
        assert kept[kind].columns()["time_ns"] == (sent if is_on else [])
