from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from tests.support.streams import open_store
from vramscope_server.store import ooms, tables
from vramscope_server.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def row(identity: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "run": "r",
        "rank": 0,
        "time_ns": int(identity[1:]),
        "received_ns": 1,
        "linked_to": "",
        "is_fatal": False,
        "recovered_step": None,
        "message": "",
        "shown": {"step": 7},
        **changes,
    }


def add(store: Store, identity: str, body: bytes = b"{}", **changes: Any) -> bool:
    return store.write_now(lambda c: ooms.add(c, row(identity, **changes), body))


def ids(store: Store, run_id: str = "r") -> list[str]:
    return [each["id"] for each in store.read_now(lambda c: ooms.of_run(c, run_id, 100))]


def test_a_report_comes_back_as_it_was(store: Store) -> None:
    body = b'{"a": 1}' * 1000
    assert add(store, "o1", body)
    assert not add(store, "o1", b"another")
    assert store.read_now(lambda c: ooms.body(c, "o1")) == body
    found = store.read_now(lambda c: ooms.get(c, "o1"))
    assert found == {**row("o1"), "raw_bytes": len(body)}
    assert store.read_now(lambda c: ooms.get(c, "o2")) is None
    assert store.read_now(lambda c: ooms.body(c, "o2")) is None


def test_what_is_told_later(store: Store) -> None:
    add(store, "o1")
    assert store.write_now(lambda c: ooms.went_on(c, "o1", 8))
    assert not store.write_now(lambda c: ooms.went_on(c, "o1", 9))
    assert not store.write_now(lambda c: ooms.was_fatal(c, "o2", "x"))
    assert store.write_now(lambda c: ooms.was_fatal(c, "o1", "x"))
    store.write_now(lambda c: ooms.judged(c, "o1", {"summary": "s"}))
    found = store.read_now(lambda c: ooms.get(c, "o1"))
    assert found is not None
    assert (found["recovered_step"], found["is_fatal"], found["message"]) == (8, True, "x")
    assert found["shown"] == {"summary": "s"}


def make_room(store: Store, **limits: int) -> list[str]:
    values = {"rank_count": 100, "run_count": 100, "total_bytes": 1 << 30, **limits}
    return store.write_now(lambda c: ooms.make_room(c, "r", 0, **values))


def test_of_a_rank_the_first_and_the_last_stay(store: Store) -> None:
    for number in range(1, 8):
        add(store, f"o{number}")
    add(store, "o8", rank=1)
    assert make_room(store, rank_count=4) == ["o3", "o4", "o5"]
    assert ids(store) == ["o8", "o7", "o6", "o2", "o1"]
    assert make_room(store, rank_count=4) == []


def test_of_a_run_and_of_all_the_oldest_go(store: Store) -> None:
    for number in range(1, 6):
        add(store, f"o{number}", rank=number)
    add(store, "o0", run="another")
    assert sorted(make_room(store, run_count=3)) == ["o1", "o2"]
    assert make_room(store, total_bytes=1) == ["o0", "o3", "o4", "o5"]
    assert ids(store) == []


def test_an_agent_whose_clock_is_ahead_pushes_no_others_out(store: Store) -> None:
    add(store, "o9", run="ahead", received_ns=1)
    add(store, "o1", received_ns=2)
    size = store.read_now(lambda c: c.scalar(select(func.length(tables.ooms.c.body)).limit(1)) or 0)
    assert make_room(store, total_bytes=size) == ["o9"]


def test_the_newest_that_ran_out_themselves_are_given_to_the_judges(store: Store) -> None:
    for number in range(1, 6):
        add(store, f"o{number}", linked_to="o1" if number == 5 else "")
    found = store.read_now(lambda c: ooms.newest_bodies(c, "r", 2))
    assert [(each["id"], body) for each, body in found] == [("o3", b"{}"), ("o4", b"{}")]
