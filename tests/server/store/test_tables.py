from __future__ import annotations

from sqlalchemy import URL, Dialect
from sqlalchemy.schema import CreateTable

from vramscope_server.store import tables


def postgresql_dialect() -> Dialect:
    """The dialect that is used without naming a driver, which need not be installed."""
    return URL.create("postgresql").get_dialect()()


def test_every_table_can_be_made_on_postgresql() -> None:
    dialect = postgresql_dialect()
    made = {
        name: str(CreateTable(table).compile(dialect=dialect))
        for name, table in tables.metadata.tables.items()
    }
    assert "id BIGSERIAL NOT NULL" in made["chunks"]
    assert "body BYTEA NOT NULL" in made["rollups"]
    assert '"user" TEXT' in made["runs"]
