"""Findings: what was wrong with a run, and from when until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import ColumnElement, Connection, select

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
        }
        for record in records
    ]
    upsert(connection, _findings, rows, keys=("id",))


def list_findings(
    connection: Connection,
    run_id: str,
    *,
    open_only: bool = False,
    limit: int = 200,
) -> list[FindingRecord]:
    """The newest findings of a run, newest first; fewer when they hold much."""
    conditions: list[ColumnElement[bool]] = [_findings.c.run_id == run_id]
    if open_only:
        conditions.append(_findings.c.resolved_ns.is_(None))
    return _load(connection, conditions, limit)


def list_open(connection: Connection, limit: int) -> list[FindingRecord]:
    """Findings of all runs that were never resolved, newest first."""
    return _load(connection, [_findings.c.resolved_ns.is_(None)], limit)


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
            )
        )
    return found
