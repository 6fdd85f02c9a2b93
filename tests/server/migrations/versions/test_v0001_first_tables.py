from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect

from vramscope_server.store import tables
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_down_and_up_again(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "base")
        assert inspect(connection).get_table_names() == ["alembic_version"]
        alembic.command.upgrade(config, "head")
        assert set(inspect(connection).get_table_names()) >= set(tables.metadata.tables)
    database.close()
