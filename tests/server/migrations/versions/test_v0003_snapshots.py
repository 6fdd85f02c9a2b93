from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect

from tests.server.store.test_snapshots import row
from vramscope_server.store import snapshots
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_the_tables_come_and_go(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        snapshots.add(connection, row())
        alembic.command.downgrade(config, "0002")
        assert not {"snapshots", "snapshot_parts"} & set(inspect(connection).get_table_names())
        alembic.command.upgrade(config, "head")
        assert snapshots.get(connection, "s1") is None
        snapshots.add(connection, row())
        assert snapshots.append(connection, "s1", 0, b"x")
    database.close()
