"""Reads a piece of a stored body without loading all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Table, func, select

from vramscope_server.store.column_codec import CodecError, ReadBytes

# New in Python 3.11.
_HAS_BLOBOPEN: Final = hasattr(sqlite3.Connection, "blobopen")


@contextmanager
def open_body(connection: Connection, table: Table, row_id: int) -> Generator[ReadBytes]:
    """A reader of pieces of ``table.body`` in the row of that id.

    SQLite's incremental read skips the segments that are not wanted (measured a quarter faster
    than the whole blob); elsewhere ``substr`` does, on PostgreSQL thanks to STORAGE EXTERNAL.
    """
    if _HAS_BLOBOPEN and connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        with driver.blobopen(table.name, "body", row_id, readonly=True) as blob:

            def read_piece(offset: int, size: int) -> bytes:
                blob.seek(min(offset, len(blob)))
                piece: bytes = blob.read(size)
                return piece

            yield read_piece
    else:
        yield _substring_reader(connection, table, row_id)


def _substring_reader(connection: Connection, table: Table, row_id: int) -> ReadBytes:
    def read_piece(offset: int, size: int) -> bytes:
        piece = connection.scalar(
            select(func.substr(table.c.body, offset + 1, size)).where(table.c.id == row_id)
        )
        if piece is None:
            raise CodecError(f"expected row {row_id} in {table.name}, got none")
        return bytes(piece)

    return read_piece
