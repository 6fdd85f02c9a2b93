from __future__ import annotations

from pathlib import Path

import pytest

from vramscope_server.store import blob_reader, tables
from vramscope_server.store.blob_reader import open_body
from vramscope_server.store.column_codec import CodecError
from vramscope_server.store.database import Database, sqlite_url

BODY = bytes(range(256)) * 100


@pytest.mark.parametrize("incremental", [True, False])
def test_pieces_of_a_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, incremental: bool
) -> None:
    monkeypatch.setattr(blob_reader, "_HAS_BLOBOPEN", incremental and blob_reader._HAS_BLOBOPEN)
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with database.write() as connection:
        connection.execute(
            tables.heads.insert().values(
                id=7, stream_id=1, kind="sample", field_table_id=1, start_position=0,
                row_count=1, first_index=0, body=BODY,
            )
        )  # fmt: skip
    with database.read() as connection, open_body(connection, tables.heads, 7) as read:
        assert read(0, 4) == BODY[:4]
        assert read(5000, 1000) == BODY[5000:6000]
        assert read(len(BODY) - 10, 100) == BODY[-10:]
        assert read(len(BODY) + 10, 100) == b""
    database.close()


def test_a_row_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_reader, "_HAS_BLOBOPEN", False)
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    with (
        database.read() as connection,
        open_body(connection, tables.heads, 7) as read,
        pytest.raises(CodecError),
    ):
        read(0, 4)
    database.close()
