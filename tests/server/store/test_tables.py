from __future__ import annotations

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from vramscope_server.store import tables


def test_every_table_can_be_made_on_postgresql() -> None:
    made = {
        name: str(CreateTable(table).compile(dialect=postgresql.dialect()))
        for name, table in tables.metadata.tables.items()
    }
    assert "id BIGSERIAL NOT NULL" in made["chunks"]
    assert "body BYTEA NOT NULL" in made["rollups"]
    assert '"user" TEXT' in made["runs"]
