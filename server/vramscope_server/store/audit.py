"""Who asked for what, when, from where, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, insert, select, update

from vramscope_server.store import tables

MAX_ANSWER_BYTES: Final = 16 << 20

_audit: Final = tables.audit
_commands: Final = tables.commands


@dataclass(frozen=True)
class AuditFilter:
    """Which rows are wanted; None is no such limit.

    Args:
        runs: of one of these: a run may be named by its id or by its name.
        since_ns: not older than this.
        until_ns: older than this.
        before: with a lower number than this.
    """

    runs: tuple[str, ...] | None = None
    who: str | None = None
    name: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    before: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """As the database has it."""
        found: list[ColumnElement[bool]] = []
        if self.runs is not None:
            found.append(_audit.c.run.in_(self.runs))
        if self.who is not None:
            found.append(_audit.c.who == self.who)
        if self.name is not None:
            found.append(_audit.c.name == self.name)
        if self.since_ns is not None:
            found.append(_audit.c.time_ns >= self.since_ns)
        if self.until_ns is not None:
            found.append(_audit.c.time_ns < self.until_ns)
        if self.before is not None:
            found.append(_audit.c.id < self.before)
        return found


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
    # Whoever asks chooses the id, and may choose one that another row has: an attempt that was
    # refused, a finding that was muted. Only the row of the time of the command is its own.
    made_ns = select(_commands.c.created_ns).where(_commands.c.id == command_id).scalar_subquery()
    own = (_audit.c.command_id == command_id, _audit.c.time_ns == made_ns)
    connection.execute(update(_audit).where(*own).values(result=result))


def list_audit(
    connection: Connection, limit: int = 200, wanted: AuditFilter | None = None
) -> list[dict[str, Any]]:
    """The newest rows that are wanted, newest first; fewer when they hold much."""
    query = select(_audit).where(*(wanted or AuditFilter()).conditions())
    found: list[dict[str, Any]] = []
    left_bytes = MAX_ANSWER_BYTES
    for row in connection.execute(query.order_by(_audit.c.id.desc()).limit(limit)):
        left_bytes -= len(row.params) + len(row.ranks) + len(row.result)
        if left_bytes < 0 and found:
            break
        found.append(_row(row))
    return found


def _row(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
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
