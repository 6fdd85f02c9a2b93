from __future__ import annotations

import time
from pathlib import Path

import alembic.command
import alembic.config

from vramscope_server.store import tokens
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_tokens_are_kept_and_what_would_lose_its_limit_is_not(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        kept, _ = tokens.create_token(connection, "kept", ["view"], time.time_ns())
        frame, _ = tokens.create_token(
            connection, "a frame", ["view"], time.time_ns(), kind="frame", run_id="r1"
        )
        alembic.command.downgrade(config, "0001")
        alembic.command.upgrade(config, "head")
        found = tokens.find_token(connection, kept)
        assert found is not None
        assert (found.name, found.run_id) == ("kept", None)
        assert tokens.find_token(connection, frame) is None
    database.close()
