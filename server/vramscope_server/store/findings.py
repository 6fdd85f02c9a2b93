"""Findings: what was wrong with a run, and from when until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, or_, select, update

from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import tables
from vramscope_server.store.upsert import upsert

MAX_ANSWER_BYTES: Final = 16 << 20

_findings: Final = tables.findings


def put(connection: Connection, records: Sequence[FindingRecord]) -> None:
    """Store findings as they are now; those that are known are brought up to date."""
    rows = [
        {
            "id": record.id,
            "run_id": record.run_id,
            "rank": record.rank,
            "kind": record.kind,
            "severity": record.severity,
            "opened_ns": record.opened_ns,
            "resolved_ns": record.resolved_ns,
            "summary": record.summary,
            "data": msgspec.json.encode(record.data).decode(),
            "subject": record.subject,
            "stage": record.stage,
            "confirmed_ns": record.confirmed_ns,
            "is_final": record.is_final,
            "judge": record.judge,
            "muted": _muted(record.muted),
        }
        for record in records
    ]
    # Whoever mutes says so by itself: another server may have done it meanwhile.
    upsert(connection, _findings, rows, keys=("id",), keep=("muted",))


def set_muted(connection: Connection, finding_id: str, muted: dict[str, Any] | None) -> None:
    """Say who does not want to hear of a finding, or that somebody does again."""
    change = update(_findings).where(_findings.c.id == finding_id)
    connection.execute(change.values(muted=_muted(muted)))


def get(connection: Connection, finding_id: str) -> FindingRecord | None:
    """One finding."""
    found = _load(connection, [_findings.c.id == finding_id], 1)
    return found[0] if found else None


def list_findings(
    connection: Connection,
    run_id: str,
    *,
    state: Literal["open", "verdict", "all"] = "all",
    limit: int = 200,
) -> list[FindingRecord]:
    """The newest findings of a run, newest first; fewer when they hold much.

    Args:
        connection: to the store.
        run_id: the run.
        state: those that hold; those and what held to the end; or all.
        limit: at most so many.
    """
    conditions: list[ColumnElement[bool]] = [_findings.c.run_id == run_id]
    if state == "open":
        conditions.append(_findings.c.resolved_ns.is_(None))
    elif state == "verdict":
        conditions.append(or_(_findings.c.resolved_ns.is_(None), _findings.c.is_final))
    return _load(connection, conditions, limit)


def list_open(connection: Connection, limit: int) -> list[FindingRecord]:
    """Findings of all runs that were never resolved, newest first."""
    return _load(connection, [_findings.c.resolved_ns.is_(None)], limit)


def list_past(connection: Connection, since_ns: int, limit: int) -> list[FindingRecord]:
    """Findings of all runs that held to the end, or were resolved after a time, newest first."""
    condition = or_(_findings.c.is_final, _findings.c.resolved_ns >= since_ns)
    return _load(connection, [_findings.c.resolved_ns.is_not(None), condition], limit)


def _load(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[FindingRecord]:
    order = (_findings.c.opened_ns.desc(), _findings.c.id)
    query = select(_findings).where(*conditions).order_by(*order).limit(limit)
    found: list[FindingRecord] = []
    left_bytes = MAX_ANSWER_BYTES
    for row in connection.execute(query):
        left_bytes -= len(row.summary) + len(row.data)
        if left_bytes < 0 and found:
            break
        found.append(
            FindingRecord(
                row.id,
                row.run_id,
                row.rank,
                row.kind,
                row.severity,
                row.opened_ns,
                row.resolved_ns,
                row.summary,
                msgspec.json.decode(row.data),
                row.subject,
                row.stage,
                row.confirmed_ns,
                row.is_final,
                None if row.muted is None else msgspec.json.decode(row.muted),
                row.judge,
            )
        )
    return found


def _muted(muted: dict[str, Any] | None) -> str | None:
    return None if muted is None else msgspec.json.encode(muted).decode()
