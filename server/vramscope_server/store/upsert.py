"""INSERT ... ON CONFLICT, which SQLite and PostgreSQL both have and SQLAlchemy spells twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    keys: Collection[str],
    *,
    keep: Collection[str] = (),
    where: ColumnElement[bool] | None = None,
) -> None:
    """Insert rows, or update those whose keys exist.

    Args:
        keys: names of the primary key's columns.
        keep: columns that an existing row keeps as they are.
        where: existing rows that may be updated; the others stay as they are.
    """
    if not rows:
        return
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    changed = {
        name: statement.excluded[name] for name in rows[0] if name not in keys and name not in keep
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=list(keys), set_=changed, where=where),
        list(rows),
    )
