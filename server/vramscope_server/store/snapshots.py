"""Snapshots and the parts that they came in. A part is as the agent sent it, never rewritten."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from vramscope_server.store import tables

RECEIVING: Final = "receiving"
COMPLETE: Final = "complete"
FAILED: Final = "failed"

_DELETED_AT_ONCE: Final = 64

_snapshots = tables.snapshots
_parts = tables.snapshot_parts


def add(connection: Connection, snapshot: Mapping[str, Any]) -> None:
    """Add a snapshot of which nothing has come yet."""
    row = {**snapshot, "run_id": snapshot["run"], "received_bytes": 0, "state": RECEIVING}
    row["steps"] = msgspec.json.encode(row["steps"]).decode()
    row["reason"] = ""
    del row["run"]
    connection.execute(insert(_snapshots).values(**row))


def get(connection: Connection, identity: str) -> dict[str, Any] | None:
    """One snapshot as the API shows it."""
    row = connection.execute(select(_snapshots).where(_snapshots.c.id == identity)).one_or_none()
    return None if row is None else _plain(row)


def of_run(connection: Connection, run_id: str, limit: int) -> list[dict[str, Any]]:
    """Snapshots of a run, the latest first."""
    rows = connection.execute(
        select(_snapshots)
        .where(_snapshots.c.run_id == run_id)
        .order_by(_snapshots.c.taken_ns.desc(), _snapshots.c.id)
        .limit(limit)
    ).all()
    return [_plain(row) for row in rows]


def unfinished(connection: Connection) -> list[dict[str, Any]]:
    """Snapshots of which not everything has come, or ever will, the oldest first."""
    rows = connection.execute(
        select(_snapshots).where(_snapshots.c.state != COMPLETE).order_by(_snapshots.c.received_ns)
    ).all()
    return [_plain(row) for row in rows]


def held_bytes(connection: Connection, run_id: str | None = None) -> int:
    """What all snapshots, or those of one run, take or will take when they are complete."""
    query = select(func.sum(_snapshots.c.wire_bytes)).where(_snapshots.c.state != FAILED)
    if run_id is not None:
        query = query.where(_snapshots.c.run_id == run_id)
    return int(connection.scalar(query) or 0)


def count(connection: Connection, run_id: str | None) -> int:
    """How many snapshots there are of a run, or of none."""
    query = select(func.count()).select_from(_snapshots).where(_snapshots.c.run_id == run_id)
    return int(connection.scalar(query) or 0)


def goes_on(connection: Connection, identity: str, stream: str) -> None:
    """Say on which stream the rest of it comes."""
    connection.execute(
        update(_snapshots)
        .where(_snapshots.c.id == identity, _snapshots.c.stream != stream)
        .values(stream=stream)
    )


def append(connection: Connection, identity: str, start: int, body: bytes) -> bool:
    """Add the part that begins where the last one ends; ``False`` if it does not."""
    moved = connection.execute(
        update(_snapshots)
        .where(
            _snapshots.c.id == identity,
            _snapshots.c.received_bytes == start,
            _snapshots.c.wire_bytes >= start + len(body),
            _snapshots.c.state == RECEIVING,
        )
        .values(received_bytes=start + len(body))
    )
    if moved.rowcount != 1:
        return False
    connection.execute(insert(_parts).values(snapshot_id=identity, start=start, body=body))
    return True


def finish(connection: Connection, identity: str, state: str, reason: str = "") -> None:
    """Say that it is complete, or why it never will be."""
    connection.execute(
        update(_snapshots)
        .where(_snapshots.c.id == identity, _snapshots.c.state == RECEIVING)
        .values(state=state, reason=reason)
    )


def part(connection: Connection, identity: str, start: int) -> bytes | None:
    """The part that begins there."""
    body: bytes | None = connection.scalar(
        select(_parts.c.body).where(_parts.c.snapshot_id == identity, _parts.c.start == start)
    )
    return None if body is None else bytes(body)


def parts(connection: Connection, identity: str) -> Generator[bytes]:
    """The parts in order, one at a time."""
    start = 0
    while (body := part(connection, identity, start)) is not None:
        yield body
        start += len(body)


def remove(connection: Connection, identity: str) -> bool:
    """Forget a snapshot; its parts are left to :func:`remove_parts`."""
    return connection.execute(delete(_snapshots).where(_snapshots.c.id == identity)).rowcount == 1


def remove_parts(connection: Connection, identity: str) -> bool:
    """Delete some parts of a snapshot; whether there may be more. A large one at once would hold
    up everything else that is to be stored."""
    starts: Sequence[int] = connection.scalars(
        select(_parts.c.start).where(_parts.c.snapshot_id == identity).limit(_DELETED_AT_ONCE)
    ).all()
    connection.execute(
        delete(_parts).where(_parts.c.snapshot_id == identity, _parts.c.start.in_(starts))
    )
    return len(starts) == _DELETED_AT_ONCE


def orphans(connection: Connection) -> list[str]:
    """Ids of snapshots that were forgotten, and of which parts are left."""
    known = select(_snapshots.c.id).where(_snapshots.c.state != FAILED)
    query = select(_parts.c.snapshot_id).where(_parts.c.snapshot_id.not_in(known)).distinct()
    return list(connection.scalars(query).all())


def _plain(row: Row[Any]) -> dict[str, Any]:
    plain = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # documented
    plain["run"] = plain.pop("run_id")
    plain["steps"] = msgspec.json.decode(plain["steps"])
    return plain
