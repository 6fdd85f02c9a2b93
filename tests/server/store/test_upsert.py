from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from vramscope_server.store import tables
from vramscope_server.store.database import Database, sqlite_url
from vramscope_server.store.upsert import upsert

ROW = {
    "id": "r", "name": "first", "world_size": 1, "emulated": False,
    "user": "", "script": "", "started_ns": 5,
}  # fmt: skip


def test_insert_update_keep_and_where(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.write() as connection:
        upsert(connection, tables.runs, [], keys=("id",))
        upsert(connection, tables.runs, [ROW], keys=("id",))
        second = ROW | {"name": "second", "started_ns": 9}
        upsert(connection, tables.runs, [second], keys=("id",), keep=("started_ns",))
        refused = ROW | {"name": "third"}
        where = tables.runs.c.name == "first"
        upsert(connection, tables.runs, [refused], keys=("id",), where=where)
        row = connection.execute(select(tables.runs)).one()
    assert (row.name, row.started_ns) == ("second", 5)
    database.close()
