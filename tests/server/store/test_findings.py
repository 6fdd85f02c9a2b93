"""Findings are stored, brought up to date, and listed newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import open_store
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import findings
from vramscope_server.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def record(
    number: int, run_id: str = "run-a", rank: int | None = 0, **values: Any
) -> FindingRecord:
    made = FindingRecord(
        f"f{number}", run_id, rank, "leak", "warning", number, None, "It grows.", {"evidence": {}}
    )
    return replace(made, **values)


def put(store: Store, *records: FindingRecord) -> None:
    store.write_now(lambda connection: findings.put(connection, records))


def listed(store: Store, **options: Any) -> list[FindingRecord]:
    return store.read_now(lambda c: findings.list_findings(c, "run-a", **options))


def test_what_was_put_is_found_newest_first(store: Store) -> None:
    of_the_run = record(3, rank=None)
    put(store, record(1), record(2), of_the_run, record(4, run_id="run-b"))
    assert listed(store) == [of_the_run, record(2), record(1)]
    assert listed(store, limit=1) == [of_the_run]
    put(store)


def test_one_that_is_known_is_brought_up_to_date(store: Store) -> None:
    put(store, record(1))
    over = record(1, resolved_ns=9, severity="info", summary="Over.", data={"evidence": {"a": 1}})
    put(store, over)
    assert listed(store) == [over]


def test_only_those_that_hold(store: Store) -> None:
    put(store, record(1), record(2, resolved_ns=5), record(3, run_id="run-b"))
    assert listed(store, state="open") == [record(1)]
    still_open = store.read_now(lambda c: findings.list_open(c, 10))
    assert [each.id for each in still_open] == ["f3", "f1"]


def test_what_held_to_the_end_is_part_of_the_verdict(store: Store) -> None:
    final = record(3, resolved_ns=5, is_final=True)
    put(store, record(1), record(2, resolved_ns=5), final)
    assert listed(store, state="verdict") == [final, record(1)]
    past = store.read_now(lambda c: findings.list_past(c, 6, 10))
    assert [each.id for each in past] == ["f3"]
    past = store.read_now(lambda c: findings.list_past(c, 5, 10))
    assert [each.id for each in past] == ["f3", "f2"]
    assert store.read_now(lambda c: findings.get(c, "f3")) == final
    assert store.read_now(lambda c: findings.get(c, "f9")) is None


def test_a_mute_is_written_by_who_mutes_alone(store: Store) -> None:
    put(store, record(1))
    store.write_now(lambda c: findings.set_muted(c, "f1", {"until": "run"}))
    put(store, record(1, summary="Newer."))
    (found,) = listed(store)
    assert (found.muted, found.summary) == ({"until": "run"}, "Newer.")
    store.write_now(lambda c: findings.set_muted(c, "f1", None))
    assert listed(store)[0].muted is None


def test_fewer_are_listed_when_they_hold_much(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, record(1, summary="x" * 100), record(2, summary="y" * 100))
    monkeypatch.setattr(findings, "MAX_ANSWER_BYTES", 150)
    assert [each.id for each in listed(store)] == ["f2"]
    monkeypatch.setattr(findings, "MAX_ANSWER_BYTES", 1)
    assert [each.id for each in listed(store)] == ["f2"]
