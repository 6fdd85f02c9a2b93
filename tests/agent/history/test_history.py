"""Windows begin and end where they should, and never touch what the job records itself."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.support.history_rig import MIB, HistoryRig
from vramscope.history.host_memory import HostMemoryBudget
from vramscope.history.taking import Taking
from vramscope.history.window import Window
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError
from vramscope_protocol.parameters import HistoryParams


def started(rig: HistoryRig, **params: Any) -> Window:
    return rig.history.start(HistoryParams(**params), "command", "c1")


def receipt_of(taking: Taking | None) -> Receipt:
    assert taking is not None
    assert taking._writing.wait(10)
    receipt = taking.poll(1)
    assert receipt is not None
    return receipt


def refused(error: pytest.ExceptionInfo[VramscopeError]) -> str:
    assert error.value.code == CONFLICT
    return error.value.message


def test_a_window_of_some_steps_ends_with_a_snapshot_of_it(rig: HistoryRig) -> None:
    window = started(rig, steps=3)
    for step in (8, 9):
        rig.history.at_boundary(step)
    assert rig.pytorch.recording
    assert window.progress == "2 of 3 steps"
    rig.history.at_boundary(10)
    assert rig.pytorch.calls[1:] == [("snapshot", True), "stop"]
    assert rig.history.window is None
    assert receipt_of(window.taking).state == "done"
    (begin,) = rig.begins
    assert [step for step, _ in begin.steps] == [8, 9, 10]
    assert (begin.step, begin.mode, begin.stacks) == (10, "alloc", True)
    assert begin.issued_by == "c1"


def test_what_is_shipped_is_the_pickle_that_was_announced(rig: HistoryRig) -> None:
    taking = rig.history.take(traces=False, step=4, origin="command", issued_by="c2")
    receipt = receipt_of(taking)
    (begin,) = rig.begins
    packed = Path(rig.shipped[0].path).read_bytes()
    raw = gzip.decompress(packed)
    assert (begin.raw_bytes, begin.wire_bytes) == (len(raw), len(packed))
    assert begin.sha256 == hashlib.sha256(raw).hexdigest()
    assert begin.mode == "segments"
    assert raw[:2] == b"\x80\x04"
    assert pickle.loads(raw)["segments"][0]["blocks"][0]["size"] == 512
    assert receipt.result["snapshot"] == begin.id
    assert receipt.result["raw_bytes"] == len(raw)
    assert receipt.result["gil_ms"] >= 0
    assert "1 blocks in 1 segments" in receipt.message


def test_while_the_device_is_busy_a_window_goes_on_to_the_next_boundary(rig: HistoryRig) -> None:
    window = started(rig, steps=1)
    rig.device.reason = "a CUDA graph is being captured"
    rig.history.at_boundary(1)
    assert window.taking is None
    rig.device.reason = None
    rig.history.at_boundary(2)
    assert receipt_of(window.taking).state == "done"


def test_a_recording_of_the_job_is_left_alone(rig: HistoryRig) -> None:
    rig.pytorch.recording = True
    with pytest.raises(VramscopeError) as error:
        started(rig)
    assert "a history of its own" in refused(error)
    with pytest.raises(VramscopeError) as error:
        rig.history.stop("x")
    assert "a history of its own" in refused(error)
    rig.history.close(0)
    assert rig.pytorch.calls == []


def test_a_recording_of_the_job_can_be_looked_at(rig: HistoryRig) -> None:
    rig.pytorch.recording = True
    assert receipt_of(rig.history.take(traces=True, step=1, origin="command", issued_by="")).state
    assert rig.begins[0].mode == "user"
    assert rig.pytorch.calls == [("snapshot", True)]


def test_ours_gives_way_when_the_job_starts_its_own(rig: HistoryRig) -> None:
    window = started(rig, steps=9)
    rig.history._give_way()
    assert window.ended == "the job has started or stopped a recording of its own"
    assert rig.pytorch.calls[-1] == "stop"
    calls = len(rig.pytorch.calls)
    rig.history.at_boundary(5)
    rig.history.close(0)
    assert len(rig.pytorch.calls) == calls


def test_one_window_at_a_time(rig: HistoryRig) -> None:
    started(rig)
    with pytest.raises(VramscopeError, match="recorded already"):
        started(rig)


def test_stopping_forgets_what_was_recorded(rig: HistoryRig) -> None:
    window = started(rig)
    rig.history.at_boundary(5)
    assert rig.history.stop("enough") is window
    assert (window.steps_done, window.ended) == (1, "enough")
    with pytest.raises(VramscopeError, match="nothing is recorded"):
        rig.history.stop("again")


def test_a_history_can_only_be_dumped_while_one_is_recorded(rig: HistoryRig) -> None:
    with pytest.raises(VramscopeError, match="history_start begins one"):
        rig.history.take(traces=True, step=1, origin="command", issued_by="")


def test_one_that_cannot_be_started_leaves_nothing_behind(rig: HistoryRig) -> None:
    rig.pytorch.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        started(rig)
    assert rig.history.window is None
    assert rig.pytorch.calls[-1] == "stop"


def test_the_ring_is_as_large_as_the_budget_allows(rig: HistoryRig) -> None:
    small = started(rig, max_mib=16).max_entries
    rig.history.stop("x")
    large = started(rig, max_mib=160).max_entries
    assert large > 9 * small
    assert rig.pytorch.calls[0] == ("start", "alloc", True, small)


def test_a_process_that_grows_too_much_loses_its_recording(rig: HistoryRig) -> None:
    window = started(rig, steps=99, max_mib=16)
    sizes = iter([0, 15 * MIB, 17 * MIB])
    window.budget = HostMemoryBudget(16 * MIB, lambda: next(sizes))
    rig.history.at_boundary(1)
    was_recording = rig.pytorch.recording
    rig.history.at_boundary(2)
    assert (was_recording, rig.pytorch.recording) == (True, False)
    assert window.ended == "the process grew by 17 MiB of host memory, more than the 16 MiB allowed"
    assert window.taking is None


def test_only_one_snapshot_is_written_at_a_time(rig: HistoryRig, tmp_path: Path) -> None:
    taking = rig.history.take(traces=False, step=1, origin="command", issued_by="")
    taking._writing.file = None
    assert taking._writing.wait(10)
    taking._writing.file = None
    with pytest.raises(VramscopeError, match="still being written"):
        rig.history.take(traces=False, step=2, origin="command", issued_by="")


def test_a_disk_without_room_fails_the_command_and_not_the_job(tmp_path: Path) -> None:
    rig = HistoryRig(tmp_path, max_bytes=10)
    receipt = receipt_of(rig.history.take(traces=False, step=1, origin="command", issued_by=""))
    assert receipt.state == "failed"
    assert receipt.message == (
        "not written: it takes more than the 10 B of disk that are left for it"
    )
    assert rig.shipped == []
    assert rig.folder.used_bytes() == 0
    rig.history.remove_folder()


def test_closing_ends_the_recording_and_refuses_what_comes(rig: HistoryRig) -> None:
    window = started(rig, steps=4)
    rig.history.close(0)
    assert window.ended == "the agent is leaving"
    assert not rig.pytorch.recording
    with pytest.raises(VramscopeError, match="the agent is leaving"):
        started(rig)
    with pytest.raises(VramscopeError, match="the agent is leaving"):
        rig.history.take(traces=False, step=1, origin="command", issued_by="")


def test_in_a_forked_child_nothing_is_recorded_and_nothing_deleted(rig: HistoryRig) -> None:
    started(rig, steps=1)
    receipt_of(rig.history.take(traces=False, step=1, origin="command", issued_by=""))
    calls = list(rig.pytorch.calls)
    descriptor = rig.folder._lock_descriptor
    rig.history.forget_after_fork()
    rig.history.at_boundary(2)
    rig.history.close(0)
    rig.history.remove_folder()
    assert rig.pytorch.calls == calls
    assert descriptor is not None
    assert Path(rig.shipped[0].path).exists()
