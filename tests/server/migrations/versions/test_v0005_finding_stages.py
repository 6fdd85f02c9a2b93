from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect, text

from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import finding_mutes, findings
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url

OLD = "'f', 'run-a', 0, 'agent_degraded', 'info', 1, NULL, 'Slow.', '{}'"


def test_findings_of_before_are_confirmed_and_nobody_s_in_turn(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0004")
        assert "finding_mutes" not in inspect(connection).get_table_names()
        connection.execute(text(f"INSERT INTO findings VALUES ({OLD})"))
        alembic.command.upgrade(config, "head")
        (old,) = findings.list_findings(connection, "run-a")
        assert old == FindingRecord("f", "run-a", 0, "agent_degraded", "info", 1, None, "Slow.", {})
        assert (old.stage, old.judge, old.is_final) == ("confirmed", "", False)
        finding_mutes.put(connection, ("train", "leak", "train.py:5"), {})
        assert len(finding_mutes.list_rules(connection)) == 1
    database.close()
