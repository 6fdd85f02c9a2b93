"""Parts are kept as they came, in order, once each, and go in small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from vramscope_server.store import snapshots
from vramscope_server.store.database import Database, sqlite_url


def row(identity: str = "s1", run: str | None = "r1", wire_bytes: int = 10) -> dict[str, Any]:
    return {
        "id": identity,
        "run": run,
        "rank": 0,
        "stream": "stream-a",
        "device": 0,
        "step": 7,
        "taken_ns": 5,
        "received_ns": 6,
        "mode": "alloc",
        "stacks": True,
        "origin": "command",
        "name": "",
        "issued_by": "c1",
        "steps": [[6, 1], [7, 2]],
        "raw_bytes": 100,
        "wire_bytes": wire_bytes,
        "sha256": "ab" * 32,
    }


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.write() as connection:
        yield connection
    database.close()


def test_a_new_one_is_shown_as_it_was_announced(connection: Connection) -> None:
    snapshots.add(connection, row())
    expected = {**row(), "received_bytes": 0, "state": "receiving", "reason": ""}
    assert snapshots.get(connection, "s1") == expected
    assert snapshots.of_run(connection, "r1", 10) == [expected]
    assert snapshots.unfinished(connection) == [expected]
    assert snapshots.get(connection, "s2") is None


def test_a_part_is_taken_only_where_the_last_one_ended(connection: Connection) -> None:
    snapshots.add(connection, row())
    assert snapshots.append(connection, "s1", 0, b"0123")
    assert not snapshots.append(connection, "s1", 0, b"0123"), "it came twice"
    assert not snapshots.append(connection, "s1", 6, b"6"), "there is a gap"
    assert not snapshots.append(connection, "s1", 4, b"4567890"), "it is more than announced"
    assert not snapshots.append(connection, "s2", 0, b"0"), "there is no such snapshot"
    assert snapshots.append(connection, "s1", 4, b"456789")
    assert list(snapshots.parts(connection, "s1")) == [b"0123", b"456789"]
    assert snapshots.part(connection, "s1", 4) == b"456789"
    found = snapshots.get(connection, "s1")
    assert found is not None
    assert found["received_bytes"] == 10


def test_it_may_go_on_on_another_stream(connection: Connection) -> None:
    snapshots.add(connection, row())
    snapshots.goes_on(connection, "s1", "stream-b")
    found = snapshots.get(connection, "s1")
    assert found is not None
    assert found["stream"] == "stream-b"


def test_a_finished_one_takes_no_more_and_stays_what_it_is(connection: Connection) -> None:
    snapshots.add(connection, row())
    snapshots.finish(connection, "s1", snapshots.FAILED, "damaged")
    assert not snapshots.append(connection, "s1", 0, b"0")
    snapshots.finish(connection, "s1", snapshots.COMPLETE)
    found = snapshots.get(connection, "s1")
    assert found is not None
    assert (found["state"], found["reason"]) == ("failed", "damaged")
    assert snapshots.unfinished(connection) == [found]


def test_room_is_counted_by_what_will_come(connection: Connection) -> None:
    assert snapshots.held_bytes(connection) == 0
    snapshots.add(connection, row("a", "r1", 10))
    snapshots.add(connection, row("b", "r2", 30))
    snapshots.add(connection, row("c", None, 5))
    assert snapshots.held_bytes(connection) == 45
    assert snapshots.held_bytes(connection, "r1") == 10
    snapshots.finish(connection, "b", snapshots.FAILED, "x")
    assert snapshots.held_bytes(connection) == 15


def test_the_latest_comes_first(connection: Connection) -> None:
    for number in range(3):
        snapshots.add(connection, row(str(number)) | {"taken_ns": number})
    assert [each["id"] for each in snapshots.of_run(connection, "r1", 2)] == ["2", "1"]


def test_a_large_one_is_deleted_a_few_parts_at_a_time(connection: Connection) -> None:
    snapshots.add(connection, row(wire_bytes=100))
    snapshots.add(connection, row("kept"))
    snapshots.append(connection, "kept", 0, b"x")
    for start in range(100):
        assert snapshots.append(connection, "s1", start, b"x")
    assert snapshots.orphans(connection) == []
    assert snapshots.remove(connection, "s1")
    assert not snapshots.remove(connection, "s1")
    assert snapshots.orphans(connection) == ["s1"]
    assert snapshots.remove_parts(connection, "s1")
    assert len(list(snapshots.parts(connection, "kept"))) == 1
    assert not snapshots.remove_parts(connection, "s1")
    assert snapshots.orphans(connection) == []
