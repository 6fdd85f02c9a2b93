"""A new snapshot finds room, or is told which limit is in its way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.server.store.test_snapshots import row
from vramscope_server.settings import Limits
from vramscope_server.snapshots.room import is_abandoned, make_room, why_no_room
from vramscope_server.store import snapshots
from vramscope_server.store.database import Database, sqlite_url

LIMITS = Limits(snapshot_run_bytes=50 << 20, snapshot_total_bytes=80 << 20)
MIB = 1 << 20


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.write() as connection:
        snapshots.add(connection, row("a", "r1", 40 * MIB) | {"stream": "of r1"})
        snapshots.add(connection, row("b", "r2", 20 * MIB) | {"received_ns": 7})
        yield connection
    database.close()


@pytest.mark.parametrize(
    ("run", "mib", "reason"),
    [
        ("r1", 10, None),
        ("r1", 11, "the snapshots of one run may take 50 MiB"),
        ("r2", 20, None),
        ("r2", 21, "all snapshots may take 80 MiB"),
        (None, 20, None),
        (None, 21, "all snapshots may take 80 MiB"),
    ],
)
def test_both_limits_hold(
    connection: Connection, run: str | None, mib: int, reason: str | None
) -> None:
    found = why_no_room(connection, run, mib * MIB, LIMITS)
    assert (found is None) == (reason is None)
    assert found is None or reason is None or reason in found


def test_one_whose_stream_is_gone_is_abandoned() -> None:
    snapshot = {"stream": "a", "state": snapshots.RECEIVING}
    assert is_abandoned(snapshot, lambda uid: False)
    assert not is_abandoned(snapshot, lambda uid: uid == "a")
    assert is_abandoned(snapshot | {"stream": None}, lambda uid: True)
    assert not is_abandoned(snapshot | {"state": snapshots.COMPLETE}, lambda uid: False)


def test_what_is_abandoned_makes_way_the_oldest_first(connection: Connection) -> None:
    reason, forgotten = make_room(connection, "r3", 30 * MIB, LIMITS, lambda uid: False)
    assert reason is None
    assert [each["id"] for each in forgotten] == ["a"]
    assert snapshots.get(connection, "a") is None
    assert snapshots.get(connection, "b") is not None


def test_what_still_comes_or_is_complete_does_not(connection: Connection) -> None:
    snapshots.finish(connection, "b", snapshots.COMPLETE)
    reason, forgotten = make_room(connection, "r3", 30 * MIB, LIMITS, lambda uid: uid == "of r1")
    assert reason is not None
    assert forgotten == []


def test_while_there_is_room_nothing_is_forgotten(connection: Connection) -> None:
    assert make_room(connection, "r3", MIB, LIMITS, lambda uid: False) == (None, [])


def test_small_ones_are_bounded_by_their_number(connection: Connection) -> None:
    limits = Limits(snapshot_run_count=3)
    for name in ("c", "d"):
        assert why_no_room(connection, "r1", 1, limits) is None
        snapshots.add(connection, row(name, "r1", 1) | {"stream": "of r1"})
    reason, _ = make_room(connection, "r1", 1, limits, lambda uid: uid == "of r1")
    assert reason == "no room: a run may have 3 snapshots; delete some first"
    assert why_no_room(connection, None, 1, limits) is None
    snapshots.finish(connection, "c", snapshots.FAILED, "damaged")
    reason, forgotten = make_room(connection, "r1", 1, limits, lambda uid: uid == "of r1")
    assert reason is None
    assert "c" in [each["id"] for each in forgotten]
