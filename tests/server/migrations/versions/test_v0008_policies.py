from __future__ import annotations

from pathlib import Path

import alembic.command
import alembic.config
from sqlalchemy import inspect

from tests.support.made_policies import firing, policy_record
from vramscope_server.store import policies
from vramscope_server.store.database import MIGRATIONS_FOLDER, Database, sqlite_url


def test_an_older_database_gets_a_place_for_policies(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    config = alembic.config.Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.downgrade(config, "0007")
        assert not {"policies", "policy_firings"} & set(inspect(connection).get_table_names())
        alembic.command.upgrade(config, "head")
        policies.put(connection, policy_record())
        assert policies.add_firing(connection, firing()) == 1
        assert [record.id for record in policies.list_policies(connection)] == ["p1"]
    database.close()
