from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.streams import FIELDS
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.database import Database, sqlite_url
from vramscope_server.store.field_tables import FieldTables, load_layout


def test_equal_tables_are_stored_once_and_come_back(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.write() as connection:
        first = FieldTables().id_of(connection, ColumnLayout(FIELDS))
        assert FieldTables().id_of(connection, ColumnLayout(FIELDS)) == first
        assert FieldTables().id_of(connection, ColumnLayout(FIELDS[:2])) != first
        assert load_layout(connection, first).fields == FIELDS
    database.close()


def test_a_number_of_a_transaction_that_was_rolled_back_is_forgotten(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    field_tables = FieldTables()

    def insert_then_fail() -> None:
        with database.write() as connection:
            field_tables.id_of(connection, ColumnLayout(FIELDS[:2]))
            raise LookupError

    with pytest.raises(LookupError):
        insert_then_fail()
    field_tables.forget_unconfirmed()
    with database.write() as connection:
        number = field_tables.id_of(connection, ColumnLayout(FIELDS))
        assert load_layout(connection, number).fields == FIELDS
    field_tables.confirm()
    with database.write() as connection:
        assert field_tables.id_of(connection, ColumnLayout(FIELDS)) == number
    database.close()
