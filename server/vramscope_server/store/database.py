"""The database behind the store: engine, connections and upgrade."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import alembic.command
import alembic.config
import alembic.util
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from vramscope_protocol.errors import INTERNAL, VramscopeError
from vramscope_server.store.server_lock import ServerLock

MIGRATIONS_FOLDER: Final = Path(__file__).resolve().parent.parent / "migrations"
BUSY_TIMEOUT_MS: Final = 5_000
_EXAMPLE: Final = "sqlite:////var/lib/vramscope/vramscope.db"


class StoreError(VramscopeError):
    """The store cannot do its work; the message says what was expected and what was found."""

    def __init__(self, message: str) -> None:
        super().__init__(INTERNAL, message)


def sqlite_url(path: Path) -> str:
    """URL of a SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


class Database:
    """One database, upgraded to this version's tables. Use :meth:`open`."""

    def __init__(self, engine: Engine, shown_url: str) -> None:
        self._engine = engine
        self.shown_url = shown_url
        """The URL without its password."""

    @classmethod
    def open(cls, url: str) -> Database:
        """Connect, create or upgrade the tables.

        Raises:
            StoreError: wrong URL, missing driver, not a database, no right, or made by a newer
                version.
        """
        parsed = _parsed(url)
        shown_url = parsed.render_as_string(hide_password=True)
        if parsed.get_backend_name() == "sqlite":
            _check_sqlite_path(parsed, shown_url)
        try:
            engine = create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite")
        except (NoSuchModuleError, ImportError, ArgumentError) as error:
            raise StoreError(
                f"expected an installed database driver for {shown_url}: {error}"
            ) from None
        if parsed.get_backend_name() == "sqlite":
            _configure_sqlite(engine)
        database = cls(engine, shown_url)
        try:
            database._upgrade()
        except StoreError:
            database.close()
            raise
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether rows can be read by ``blobopen``."""
        return self._engine.dialect.name == "sqlite"

    def server_lock(self) -> ServerLock | None:
        """The lock of the one server of a SQLite file; other databases are made for many."""
        path = self._engine.url.database if self.is_sqlite else None
        return None if path is None else ServerLock(Path(f"{path}.lock"))

    def read(self) -> AbstractContextManager[Connection]:
        """A connection on which every statement sees the same committed state."""
        return self._connection(write=False)

    def write(self) -> AbstractContextManager[Connection]:
        """A connection in a transaction that commits when the block ends without an error."""
        return self._connection(write=True)

    @contextmanager
    def _connection(self, *, write: bool) -> Generator[Connection]:
        options: dict[str, Any] = {"vramscope_write": write}
        if not self.is_sqlite and not write:
            options["isolation_level"] = "REPEATABLE READ"
        with self._engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close every pooled connection."""
        self._engine.dispose()

    def _upgrade(self) -> None:
        config = alembic.config.Config()
        config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
        try:
            with self.write() as connection:
                config.attributes["connection"] = connection
                alembic.command.upgrade(config, "head")
        except DBAPIError as error:
            raise StoreError(
                f"expected a database that can be opened at {self.shown_url}, got: {error.orig}"
            ) from None
        except SQLAlchemyError as error:
            raise StoreError(f"cannot create the tables in {self.shown_url}: {error}") from None
        except alembic.util.CommandError as error:
            raise StoreError(
                f"expected tables of this version or older in {self.shown_url}; they were made by "
                f"a newer vramscope ({error})"
            ) from None


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"expected a database URL such as {_EXAMPLE}, got {url.partition('@')[0]!r}"
        ) from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(
            f"expected a sqlite or postgresql URL, got one for {parsed.get_backend_name()!r}"
        )
    return parsed


def _check_sqlite_path(url: URL, shown_url: str) -> None:
    """Say in words what SQLite would only call "unable to open database file"."""
    if not url.database or url.database == ":memory:":
        raise StoreError(f"expected a database file such as {_EXAMPLE}, got {shown_url}")
    path = Path(url.database)
    if path.is_dir():
        raise StoreError(f"expected a database file, got a folder: {path}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot create the folder {path.parent} for the database: {error.strerror}"
        ) from None
    needed = path if path.exists() else path.parent
    if not os.access(needed, os.W_OK):
        raise StoreError(f"expected the right to write {needed}, got a read-only place")


def _configure_sqlite(engine: Engine) -> None:
    def on_connect(dbapi_connection: Any, _record: Any) -> None:
        # The driver's own BEGIN comes too late (not before SELECT), so transactions are ours.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    def on_begin(connection: Connection) -> None:
        # IMMEDIATE takes the write lock at once: a lock taken midway cannot wait for its turn.
        writes = connection.get_execution_options().get("vramscope_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
