"""Lines that are muted in every run of a name."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Connection, select
from sqlalchemy import delete as delete_from

from vramscope_server.store import tables
from vramscope_server.store.upsert import upsert

Line = tuple[str, str, str]
"""Name of the run, kind and subject of the finding."""

_mutes: Final = tables.finding_mutes


def put(connection: Connection, line: Line, muted: dict[str, Any]) -> None:
    """Mute a line."""
    name, kind, subject = line
    row = {
        "run_name": name,
        "kind": kind,
        "subject": subject,
        "muted": msgspec.json.encode(muted).decode(),
    }
    upsert(connection, _mutes, [row], keys=("run_name", "kind", "subject"))


def delete(connection: Connection, line: Line) -> None:
    """Mute it no more."""
    name, kind, subject = line
    connection.execute(
        delete_from(_mutes).where(
            _mutes.c.run_name == name, _mutes.c.kind == kind, _mutes.c.subject == subject
        )
    )


def list_rules(connection: Connection) -> list[tuple[Line, dict[str, Any]]]:
    """All lines that are muted."""
    return [
        ((row.run_name, row.kind, row.subject), msgspec.json.decode(row.muted))
        for row in connection.execute(select(_mutes))
    ]
