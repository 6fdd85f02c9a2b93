from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from vramscope_server.store import tables
from vramscope_server.store.database import Database, StoreError, sqlite_url


def test_the_migrations_make_the_tables_that_the_code_names(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.read() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.metadata) == []
    database.close()


def test_opening_twice_upgrades_once_and_keeps_the_data(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "with space %41.db")
    for expected in (0, 1):
        database = Database.open(url)
        with database.write() as connection:
            found = connection.exec_driver_sql("SELECT count(*) FROM audit").scalar_one()
            connection.exec_driver_sql(
                "INSERT INTO events (run_id, time_ns, kind, text, data) "
                "VALUES ('run-a', 1, 'mark', '', '{}')"
            )
            events = connection.exec_driver_sql("SELECT count(*) FROM events").scalar_one()
        assert (found, events) == (0, expected + 1)
        database.close()


def test_connections_are_set_up_for_one_writer_and_many_readers(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.read() as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        ]
    assert settings == ["wal", 1, 5000]
    database.close()


def test_a_reader_sees_one_state_while_a_writer_commits(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    count = "SELECT count(*) FROM field_tables"
    insert = "INSERT INTO field_tables (fingerprint, fields) VALUES ('a', '[]')"
    with database.read() as reader:
        assert reader.exec_driver_sql(count).scalar_one() == 0
        with database.write() as writer:
            writer.exec_driver_sql(insert)
        assert reader.exec_driver_sql(count).scalar_one() == 0
    with database.read() as reader:
        assert reader.exec_driver_sql(count).scalar_one() == 1
    database.close()


def test_a_write_that_fails_is_rolled_back(tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))

    def insert_then_fail() -> None:
        with database.write() as writer:
            writer.exec_driver_sql(
                "INSERT INTO field_tables (fingerprint, fields) VALUES ('a', '')"
            )
            raise LookupError

    with pytest.raises(LookupError):
        insert_then_fail()
    with database.read() as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM field_tables").scalar_one() == 0
    database.close()


def test_a_missing_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "vramscope"
    Database.open(sqlite_url(folder / "vramscope.db")).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def broken_file(folder: Path) -> str:
    (folder / "broken.db").write_bytes(b"this is not a database " * 100)
    return sqlite_url(folder / "broken.db")


def newer_tables(folder: Path) -> str:
    url = sqlite_url(folder / "newer.db")
    Database.open(url).close()
    connection = sqlite3.connect(folder / "newer.db")
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    return url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nonsense", "expected a database URL such as sqlite:////"),
        ("/var/lib/x.db", "expected a database URL such as sqlite:////"),
        ("mysql://host/x", "expected a sqlite or postgresql URL"),
        ("sqlite://", "expected a database file"),
        ("sqlite:///:memory:", "expected a database file"),
        ("sqlite:////proc/none/x.db", "cannot create the folder /proc/none"),
        ("postgresql+nodriver://user:secret@host/x", "expected an installed database driver"),
    ],
)
def test_a_url_that_cannot_be_opened_is_one_clear_line(url: str, expected: str) -> None:
    with pytest.raises(StoreError) as caught:
        Database.open(url)
    assert expected in caught.value.message
    assert "\n" not in caught.value.message
    assert "secret" not in caught.value.message


def test_a_file_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    for url, expected in (
        (sqlite_url(tmp_path), "got a folder"),
        (broken_file(tmp_path), "file is not a database"),
        (newer_tables(tmp_path), "a newer vramscope"),
    ):
        with pytest.raises(StoreError) as caught:
            Database.open(url)
        assert expected in caught.value.message
        assert "\n" not in caught.value.message
