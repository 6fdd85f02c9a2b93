"""What an open stream may not send: batches without a table, too much, and pieces too large."""

from __future__ import annotations

import pytest

from tests.protocol.test_session import BATCH, BODY, TABLE, refused, server_in
from vramscope_protocol.codec import (
    MAX_BATCH_ROWS,
    MAX_FIELDS,
    MAX_SNAPSHOT_CHUNK_BYTES,
    MAX_SNAPSHOT_STEPS,
    MAX_TABLES,
    encode,
)
from vramscope_protocol.errors import BAD_MESSAGE, UNEXPECTED_MESSAGE
from vramscope_protocol.messages import (
    AgentMessage,
    Batch,
    Field,
    FieldTable,
    SnapshotBegin,
    SnapshotChunk,
)
from vramscope_protocol.session import State


def test_batch_needs_its_field_table() -> None:
    session = server_in(State.OPEN)
    error = refused(session.receive, encode(BATCH))
    assert (error.code, error.message) == (
        UNEXPECTED_MESSAGE,
        "expected field table 0 before its first batch",
    )
    session.receive(encode(TABLE))
    assert session.receive(encode(BATCH)) == BATCH


def test_field_table_may_be_replaced() -> None:
    session = server_in(State.OPEN)
    session.receive(encode(TABLE))
    shorter = FieldTable(0, TABLE.fields[:2])
    session.receive(encode(shorter))
    assert session.tables == {0: shorter.fields}
    assert refused(session.receive, encode(BATCH)).code == BAD_MESSAGE


def test_number_of_field_tables_is_bounded() -> None:
    session = server_in(State.OPEN)
    for table in range(MAX_TABLES):
        session.receive(encode(FieldTable(table, TABLE.fields)))
    session.receive(encode(FieldTable(0, TABLE.fields)))
    error = refused(session.receive, encode(FieldTable(MAX_TABLES, TABLE.fields)))
    assert (error.code, error.message[:32]) == (BAD_MESSAGE, "expected at most 64 field tables")


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (Batch(1, "sample", 0, 0, 0, b""), f"expected 1 to {MAX_BATCH_ROWS} rows"),
        (Batch(1, "sample", 0, 0, MAX_BATCH_ROWS + 1, BODY), "got 8193 from 0"),
        (Batch(1, "sample", 0, 0, 3, BODY), "for column 1, got"),
        (Batch(1, "sample", 0, 0, 2, BODY + b"q"), "expected 51 bytes for 3 columns of 2 rows"),
        (Batch(1, "sample", 0, 0, 2, BODY[:-1]), "got 50"),
        (Batch(1, "sample", 0, 0, 2, b"d" + BODY[1:]), "expected type 'q' for time_ns, got 'd'"),
        (Batch(1, "sample", 0, 0, 2, b""), "for column 0, got ''"),
    ],
)
def test_wrong_batches_are_refused(batch: Batch, says: str) -> None:
    session = server_in(State.OPEN)
    session.receive(encode(TABLE))
    error = refused(session.receive, encode(batch))
    assert error.code == BAD_MESSAGE
    assert says in error.message


def named(*names: str) -> FieldTable:
    return FieldTable(0, [Field(name, "q") for name in names])


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (named(), "expected 1 to 512 different fields, got 0"),
        (named("time_ns", "step", "step"), "different fields, got 3"),
        (named(*(str(i) for i in range(MAX_FIELDS + 1))), "got 513"),
        (named("time_ns", "x"), "expected the columns time_ns and step"),
        (named("step"), "expected the columns time_ns and step"),
    ],
)
def test_wrong_field_tables_are_refused(table: FieldTable, says: str) -> None:
    session = server_in(State.OPEN)
    error = refused(session.receive, encode(table))
    assert error.code == BAD_MESSAGE
    assert says in error.message
    assert session.tables == {}


@pytest.mark.parametrize(
    "message",
    [
        SnapshotChunk("s", 0, b""),
        SnapshotChunk("s", 0, bytes(MAX_SNAPSHOT_CHUNK_BYTES + 1)),
        SnapshotBegin("s", 1, 3, 1, "ab" * 32, steps=[(1, 1)] * (MAX_SNAPSHOT_STEPS + 1)),
    ],
    ids=["empty", "large", "steps"],
)
def test_server_bounds_the_pieces_of_a_snapshot(message: AgentMessage) -> None:
    assert refused(server_in(State.OPEN).receive, encode(message)).code == BAD_MESSAGE
