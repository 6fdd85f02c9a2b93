"""Events: things that happened once, on a rank or to a run as a whole."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Connection, insert, select

from vramscope_server.store import tables

MAX_ANSWER_BYTES: Final = 16 << 20


def add_event(
    connection: Connection,
    run_id: str,
    rank: int | None,
    time_ns: int,
    kind: str,
    step: int | None = None,
    text: str = "",
    data: dict[str, Any] | None = None,
) -> None:
    """Store an event that the server itself noticed; those of agents go through the writer."""
    connection.execute(
        insert(tables.events).values(
            run_id=run_id,
            rank=rank,
            time_ns=time_ns,
            kind=kind,
            step=step,
            text=text,
            data=msgspec.json.encode(data or {}).decode(),
        )
    )


def list_events(
    connection: Connection,
    run_id: str,
    start_ns: int | None = None,
    end_ns: int | None = None,
    limit: int = 1000,
    kind: str | None = None,
) -> list[dict[str, Any]]:
    """The last ``limit`` events of a run in a span of time, oldest first.

    Fewer when they hold much: an event may be as large as a message.
    """
    table = tables.events
    query = select(table).where(table.c.run_id == run_id)
    if start_ns is not None:
        query = query.where(table.c.time_ns >= start_ns)
    if end_ns is not None:
        query = query.where(table.c.time_ns <= end_ns)
    if kind is not None:
        query = query.where(table.c.kind == kind)
    found: list[dict[str, Any]] = []
    left_bytes = MAX_ANSWER_BYTES
    for row in connection.execute(
        query.order_by(table.c.time_ns.desc(), table.c.id.desc()).limit(limit)
    ):
        left_bytes -= len(row.text) + len(row.data)
        if left_bytes < 0 and found:
            break
        found.append(
            {
                "time_ns": row.time_ns,
                "rank": row.rank,
                "step": row.step,
                "kind": row.kind,
                "text": row.text,
                "data": msgspec.json.decode(row.data),
            }
        )
    return found[::-1]
