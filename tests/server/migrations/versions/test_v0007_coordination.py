from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import text

from vramscope_server.store import command_log
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url

OLD = "'c', 'run-a', 'gc_collect', '{}', 0, '[0]', 'done', 'me', 'cli', 1, 31, 2"


def test_commands_of_before_were_run_by_each_rank_for_itself(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0006")
        connection.execute(text(f"INSERT INTO commands VALUES ({OLD})"))
        alembic.command.upgrade(config, "head")
        old = command_log.get_command(connection, "c")
        assert old is not None
        assert (old["agreement"], old["note"]) == (None, "")
        command_log.set_step(connection, "c", 5)
        alembic.command.downgrade(config, "0006")
        (row,) = connection.execute(text("SELECT * FROM commands")).all()
        assert row.finished_ns == 2
    database.close()
