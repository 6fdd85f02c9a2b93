from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect

from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import findings
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_an_older_database_gets_a_place_for_findings(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0003")
        assert "findings" not in inspect(connection).get_table_names()
        alembic.command.upgrade(config, "head")
        record = FindingRecord("f", "run-a", None, "leak", "warning", 1, None, "It grows.", {})
        findings.put(connection, [record])
        assert findings.list_findings(connection, "run-a") == [record]
    database.close()
