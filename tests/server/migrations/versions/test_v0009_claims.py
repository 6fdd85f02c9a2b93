from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import text

from tests.support.streams import START_NS, registration
from vramscope_protocol.claims import hashed_secret
from vramscope_server.store import claims, runs
from vramscope_server.store.claims import RunClaim
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url

OLD = "'run-a', 'training', 2, 0, 'me', 'train.py', 7"


def test_a_run_of_before_is_nobodys_until_a_rank_of_it_comes(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0008")
        connection.execute(text(f"INSERT INTO runs VALUES ({OLD})"))
        alembic.command.upgrade(config, "head")
        assert claims.claim_of(connection, "run-a") == RunClaim("", "")
        message = registration()
        message.run_secret = "launch"
        runs.register(connection, message, START_NS, "one")
        assert claims.claim_of(connection, "run-a") == RunClaim("one", hashed_secret("launch"))
        alembic.command.downgrade(config, "0008")
        (row,) = connection.execute(text("SELECT * FROM runs")).all()
        assert row.started_ns == 7
    database.close()
