"""Who asked for what, when, from where, and what came of it."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select, update

from vramscope_server.store import tables

_audit = tables.audit


def record(connection: Connection, row: dict[str, Any]) -> int:
    """Add a row: time_ns, who, origin, address, run, command_id, name, ranks, dry_run, params,
    result."""
    values = row | {
        "ranks": msgspec.json.encode(row["ranks"]).decode(),
        "params": msgspec.json.encode(row["params"]).decode(),
    }
    audit_id: int = connection.execute(
        insert(_audit).values(**values).returning(_audit.c.id)
    ).scalar_one()
    return audit_id


def set_result(connection: Connection, command_id: str, result: str) -> None:
    """Say what came of a command."""
    connection.execute(
        update(_audit).where(_audit.c.command_id == command_id).values(result=result)
    )


def list_audit(
    connection: Connection, limit: int = 200, run: str | None = None
) -> list[dict[str, Any]]:
    """The newest rows, newest first."""
    query = select(_audit)
    if run is not None:
        query = query.where(_audit.c.run == run)
    rows = connection.execute(query.order_by(_audit.c.id.desc()).limit(limit)).all()
    return [
        {
            "time_ns": row.time_ns,
            "who": row.who,
            "origin": row.origin,
            "address": row.address,
            "run": row.run,
            "command_id": row.command_id,
            "name": row.name,
            "ranks": msgspec.json.decode(row.ranks),
            "dry_run": row.dry_run,
            "params": msgspec.json.decode(row.params),
            "result": row.result,
        }
        for row in rows
    ]
