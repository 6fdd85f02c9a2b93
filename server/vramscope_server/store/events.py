"""Events: things that happened once, on a rank or to a run as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, insert, select

from vramscope_server.store import tables

MAX_ANSWER_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class EventFilter:
    """Which events are wanted; what is None leaves all of them."""

    start_ns: int | None = None
    end_ns: int | None = None
    kind: str | None = None
    without: str | None = None
    """A kind that is left out."""
    rank: int | None = None
    """Of this rank; what happened to the run as a whole is everybody's."""

    def conditions(self) -> list[ColumnElement[bool]]:
        """The same for the database."""
        columns = tables.events.c
        found: list[ColumnElement[bool]] = []
        if self.start_ns is not None:
            found.append(columns.time_ns >= self.start_ns)
        if self.end_ns is not None:
            found.append(columns.time_ns <= self.end_ns)
        if self.kind is not None:
            found.append(columns.kind == self.kind)
        if self.without is not None:
            found.append(columns.kind != self.without)
        if self.rank is not None:
            found.append(columns.rank.is_(None) | (columns.rank == self.rank))
        return found


_EVERYTHING: Final = EventFilter()


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
    chosen: EventFilter = _EVERYTHING,
    limit: int = 1000,
) -> list[dict[str, Any]]:
    """The last ``limit`` events of a run that are wanted, oldest first.

    Fewer when they hold much: an event may be as large as a message.
    """
    table = tables.events
    query = select(table).where(table.c.run_id == run_id, *chosen.conditions())
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
