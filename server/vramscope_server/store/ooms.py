"""Reports of running out of memory, each in one row: they are small."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from vramscope_server.store import tables

FIRST_KEPT: Final = 8
"""Of a rank's reports these stay when there are too many, and the newest."""

_ooms: Final = tables.ooms
_SHOWN: Final = [column for column in _ooms.c if column.name != "body"]


def add(connection: Connection, row: Mapping[str, Any], report: bytes) -> bool:
    """Store a report; ``False`` if it is there already.

    Args:
        connection: of a transaction.
        row: as :func:`get` gives it back, without ``raw_bytes``.
        report: as it came.
    """
    if get(connection, row["id"]) is not None:
        return False
    values = {**row, "run_id": row["run"], "raw_bytes": len(report)}
    values["shown"] = msgspec.json.encode(row["shown"]).decode()
    values["body"] = zlib.compress(report, 6)
    del values["run"]
    connection.execute(insert(_ooms).values(**values))
    return True


def get(connection: Connection, identity: str) -> dict[str, Any] | None:
    """One report without its body."""
    row = connection.execute(select(*_SHOWN).where(_ooms.c.id == identity)).one_or_none()
    return None if row is None else _plain(row)


def body(connection: Connection, identity: str) -> bytes | None:
    """A report as it came."""
    packed = connection.scalar(select(_ooms.c.body).where(_ooms.c.id == identity))
    return None if packed is None else zlib.decompress(packed)


def of_run(connection: Connection, run_id: str, limit: int) -> list[dict[str, Any]]:
    """Reports of a run, the newest first."""
    rows = connection.execute(
        select(*_SHOWN)
        .where(_ooms.c.run_id == run_id)
        .order_by(_ooms.c.time_ns.desc(), _ooms.c.id)
        .limit(limit)
    ).all()
    return [_plain(row) for row in rows]


def went_on(connection: Connection, identity: str, step: int) -> bool:
    """A step ended after it; whether that is news."""
    changed = connection.execute(
        update(_ooms)
        .where(_ooms.c.id == identity, _ooms.c.recovered_step.is_(None))
        .values(recovered_step=step)
    )
    return changed.rowcount == 1


def was_fatal(connection: Connection, identity: str, message: str) -> bool:
    """The job ended of it; whether there is such a report."""
    changed = connection.execute(
        update(_ooms).where(_ooms.c.id == identity).values(is_fatal=True, message=message)
    )
    return changed.rowcount == 1


def judged(connection: Connection, identity: str, shown: Mapping[str, Any]) -> None:
    """Show something else of it in lists."""
    connection.execute(
        update(_ooms)
        .where(_ooms.c.id == identity)
        .values(shown=msgspec.json.encode(shown).decode())
    )


def make_room(
    connection: Connection,
    run_id: str,
    rank: int,
    *,
    rank_count: int,
    run_count: int,
    total_bytes: int,
) -> list[str]:
    """Delete what is too much; the ids of what went."""
    of_run = _ooms.c.run_id == run_id
    of_rank = select(_ooms.c.id).where(of_run, _ooms.c.rank == rank).order_by(_ooms.c.time_ns)
    ids = list(connection.scalars(of_rank).all())
    first = min(FIRST_KEPT, rank_count // 2)
    gone = ids[first : len(ids) - (rank_count - first)] if len(ids) > rank_count else []
    _delete(connection, gone)
    oldest = select(_ooms.c.id).where(of_run).order_by(_ooms.c.time_ns.desc()).offset(run_count)
    excess = list(connection.scalars(oldest).all())
    _delete(connection, excess)
    gone += excess
    size = func.length(_ooms.c.body)
    held_bytes = int(connection.scalar(select(func.sum(size))) or 0)
    while held_bytes > total_bytes:
        found = connection.execute(
            # By the server's clock: an agent whose clock is wrong must not push others out.
            select(_ooms.c.id, size).order_by(_ooms.c.received_ns, _ooms.c.time_ns).limit(1)
        ).one_or_none()
        if found is None:
            break
        _delete(connection, [found[0]])
        gone.append(found[0])
        held_bytes -= int(found[1])
    return gone


def newest_bodies(
    connection: Connection, run_id: str, limit: int
) -> list[tuple[dict[str, Any], bytes]]:
    """The newest reports of a run that ran out itself, the oldest of them first."""
    rows = [row for row in of_run(connection, run_id, 4 * limit) if not row["linked_to"]][:limit]
    found = [(row, body(connection, row["id"])) for row in reversed(rows)]
    return [(row, data) for row, data in found if data is not None]


def _delete(connection: Connection, ids: list[str]) -> None:
    if ids:
        connection.execute(delete(_ooms).where(_ooms.c.id.in_(ids)))


def _plain(row: Row[Any]) -> dict[str, Any]:
    plain = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]  # documented
    plain["run"] = plain.pop("run_id")
    plain["shown"] = msgspec.json.decode(plain["shown"])
    return plain
