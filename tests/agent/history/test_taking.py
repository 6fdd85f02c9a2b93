"""The answer comes when the file is written, and says what it cost."""

from __future__ import annotations

from pathlib import Path

from tests.support.history_rig import made_snapshot
from vramscope.collectors.self_cost import SelfCost
from vramscope.history.taking import Taking
from vramscope.history.writing import Writing

KNOWN = {"gil_ms": 12.34, "segments": 2, "blocks": 5, "entries": 7}


def taking(path: Path) -> tuple[Taking, Writing]:
    writing = Writing(
        made_snapshot(), lambda: (str(path), 1 << 30), lambda file: None, SelfCost(lambda: 0)
    )
    return Taking("s1", writing, dict(KNOWN)), writing


def test_the_receipt_waits_for_the_file(tmp_path: Path) -> None:
    answer, writing = taking(tmp_path / "a")
    assert answer.poll(3) is None
    assert answer.poll_on_agent_thread() is None
    was_over = answer.is_over
    writing.start()
    assert writing.wait(30)
    assert (was_over, answer.is_over) == (False, True)
    receipt = answer.poll_on_agent_thread()
    assert receipt is not None
    assert receipt.state == "done"
    assert receipt.result.keys() == {*KNOWN, "snapshot", "raw_bytes", "wire_bytes"}
    assert receipt.took_s is not None
    assert "7 events of history" in receipt.message
    assert "waited 12.3 ms" in receipt.message


def test_one_that_was_not_written_is_failed(tmp_path: Path) -> None:
    answer, writing = taking(tmp_path / "no" / "a")
    writing.start()
    assert writing.wait(30)
    receipt = answer.poll(1)
    assert receipt is not None
    assert receipt.state == "failed"
    assert receipt.message.startswith("not written: FileNotFoundError")


def test_cancelled_before_it_is_written_it_is_failed(tmp_path: Path) -> None:
    answer, writing = taking(tmp_path / "a")
    receipt = answer.cancel("the process ended")
    assert receipt.state == "failed"
    assert receipt.message == "the process ended; the snapshot was not written"
    assert writing.error == ""


def test_cancelled_after_it_was_written_it_is_done(tmp_path: Path) -> None:
    answer, writing = taking(tmp_path / "a")
    writing.start()
    assert writing.wait(30)
    assert answer.cancel("the process ended").state == "done"
