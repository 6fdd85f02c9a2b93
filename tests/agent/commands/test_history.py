"""The commands about snapshots and histories, and what their receipts say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.history_rig import HistoryRig
from vramscope.commands.call import Answer, Call, Ongoing
from vramscope.commands.history import history_handlers
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import HistoryParams, SnapshotParams


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[HistoryRig]:
    rig = HistoryRig(tmp_path)
    yield rig
    rig.history.close(5.0)
    rig.history.remove_folder()


def run(rig: HistoryRig, name: str, params: Any = None) -> Answer:
    return history_handlers(rig.history)[name](Call(params, step=7, id="c1"))


def ongoing(answer: Answer) -> Ongoing:
    assert not isinstance(answer, Receipt)
    return answer


def last_receipt(rig: HistoryRig, answer: Answer) -> Receipt:
    assert rig.history._writing is not None
    assert rig.history._writing.wait(30)
    receipt = ongoing(answer).poll_on_agent_thread()
    assert receipt is not None
    return receipt


def test_a_snapshot_is_of_segments_unless_more_is_asked_for(rig: HistoryRig) -> None:
    receipt = last_receipt(rig, run(rig, "snapshot", SnapshotParams()))
    assert rig.pytorch.calls == [("snapshot", False)]
    assert receipt.result["snapshot"] == rig.shipped[0].begin.id
    assert rig.begins[0].issued_by == "c1"
    assert rig.shipped[0].begin.step == 7


def test_a_recording_without_an_end_answers_at_once(rig: HistoryRig) -> None:
    receipt = run(rig, "history_start", HistoryParams(max_mib=64))
    assert isinstance(receipt, Receipt)
    assert receipt.state == "done"
    assert receipt.message == ("Recording, within 64 MiB of host memory: the latest 20971 events.")
    assert receipt.result["max_entries"] == 20971
    dumped = last_receipt(rig, run(rig, "history_dump"))
    assert dumped.result["entries"] == 3
    assert rig.pytorch.recording
    stopped = run(rig, "history_stop")
    assert isinstance(stopped, Receipt)
    assert stopped.message == "Stopped after 0 steps; what was recorded is gone."
    assert not rig.pytorch.recording


def test_a_pytorch_that_cannot_mark_backward_passes_is_told(
    rig: HistoryRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vramscope.history.backward_lines.is_supported", lambda: False)
    receipt = run(rig, "history_start", HistoryParams(backward_lines=True))
    assert isinstance(receipt, Receipt)
    assert "this PyTorch cannot mark backward passes" in receipt.message


def test_a_recording_of_some_steps_answers_with_its_snapshot(rig: HistoryRig) -> None:
    answer = ongoing(run(rig, "history_start", HistoryParams(steps=2)))
    rig.history.at_boundary(8)
    assert answer.poll(8) is None
    assert answer.progress == "recording: 1 of 2 steps"
    rig.history.at_boundary(9)
    receipt = last_receipt(rig, answer)
    assert receipt.state == "done"
    assert receipt.result["snapshot"] == rig.shipped[0].begin.id
    assert receipt.result["steps_recorded"] == 2


def test_one_that_ended_early_says_why(rig: HistoryRig) -> None:
    answer = ongoing(run(rig, "history_start", HistoryParams(steps=5)))
    rig.history.at_boundary(8)
    run(rig, "history_stop")
    receipt = answer.poll_on_agent_thread()
    assert receipt is not None
    assert receipt.state == "failed"
    assert receipt.message == ("history_stop came first; recording stopped after 1 of 5 steps")


def test_cancelled_it_records_no_longer(rig: HistoryRig) -> None:
    answer = ongoing(run(rig, "history_start", HistoryParams(steps=5)))
    receipt = answer.cancel("no optimizer step within 30 s")
    assert receipt.state == "failed"
    assert "no optimizer step within 30 s; recording stopped after 0 of 5" in receipt.message
    assert not rig.pytorch.recording


def test_cancelled_while_it_is_written_it_is_not_written(rig: HistoryRig) -> None:
    answer = ongoing(run(rig, "history_start", HistoryParams(steps=1)))
    rig.history.at_boundary(8)
    assert rig.history._writing is not None
    assert rig.history._writing.wait(30)
    assert answer.cancel("the process ended").state == "done"


def test_what_cannot_be_done_raises(rig: HistoryRig) -> None:
    for name in ("history_stop", "history_dump"):
        with pytest.raises(VramscopeError, match="recorded"):
            run(rig, name)
