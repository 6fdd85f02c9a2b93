from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect

from tests.server.store.test_ooms import row
from vramscope_server.store import ooms
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_an_older_database_gets_a_place_for_reports(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0005")
        assert "ooms" not in inspect(connection).get_table_names()
        alembic.command.upgrade(config, "head")
        assert ooms.add(connection, row("o1"), b"{}")
        assert ooms.body(connection, "o1") == b"{}"
    database.close()
