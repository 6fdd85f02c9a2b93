"""Findings are found by what they are told apart by, within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings import shelf as shelf_module
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.findings.shelf import Shelf, key_of


def record(run_id: str = "run-a", rank: int = 0, **values: Any) -> FindingRecord:
    finding = Finding(**{"kind": "leak", "severity": "info", "summary": "It grows."} | values)
    return opened(run_id, finding, rank, 1)


def test_open_ones_and_past_ones_by_key_and_run() -> None:
    shelf = Shelf()
    one, other = record(), record("run-b")
    shelf.put(one)
    shelf.put(other)
    assert shelf.open(key_of(one)) is one
    assert (shelf.open_of("run-a"), sorted(shelf.runs())) == ([one], ["run-a", "run-b"])
    shelf.take_away(one)
    one.resolve(5, is_final=True)
    shelf.put(one)
    assert (shelf.open_of("run-a"), shelf.final_of("run-a")) == ([], [one])
    assert shelf.past(key_of(one)) is one
    assert shelf.runs() == ["run-b"]
    assert shelf.find(one.id) is one
    assert shelf.ids() == {one.id, other.id}
    shelf.take_away(one)
    assert (shelf.past(key_of(one)), shelf.final_of("run-a")) == (None, [])


def test_one_that_changes_is_taken_away_before() -> None:
    shelf, one = Shelf(), record()
    shelf.put(one)
    before = key_of(one)
    shelf.take_away(one)
    one.subject = "a.py:1"
    shelf.put(one)
    assert shelf.open_of("run-a") == [one]
    assert shelf.open(before) is None
    # Another one at the same place is left alone.
    shelf.take_away(record(subject="a.py:1"))
    assert shelf.open_of("run-a") == [one]


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "MAX_OPEN", 2)
    monkeypatch.setattr(shelf_module, "MAX_PAST", 2)
    shelf = Shelf()
    for rank in range(3):
        assert shelf.is_full is (rank == 2)
        shelf.put(record(rank=rank))
    over = [record(rank=rank) for rank in range(10, 13)]
    for one in over:
        one.resolve(5, is_final=True)
        shelf.put(one)
    assert shelf.final_of("run-a") == over[1:]
