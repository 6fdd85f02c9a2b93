"""Writes what several streams have pending, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, bindparam, delete, insert, update

from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.store import rollup, rollup_cascade, tables
from vramscope_server.store.field_tables import FieldTables
from vramscope_server.store.stream_state import StreamState
from vramscope_server.store.upsert import upsert

_CASCADE_WINDOW_NS = rollup.window_ns(10)

Row = dict[str, Any]

_delete_heads = delete(tables.heads).where(
    tables.heads.c.stream_id == bindparam("sealed_stream"),
    tables.heads.c.kind == bindparam("sealed_kind"),
    tables.heads.c.start_position < bindparam("sealed_end"),
)
_update_stream = (
    update(tables.streams)
    .where(
        tables.streams.c.id == bindparam("stream_id"),
        tables.streams.c.last_seq == bindparam("committed_seq"),
    )
    .values(
        last_seq=bindparam("new_seq"),
        last_seen_ns=bindparam("seen_ns"),
        summary=bindparam("new_summary"),
    )
)


class StreamConflict(Exception):
    """A stream moved on without this writer: another server took it over."""


def write_streams(
    connection: Connection, states: Sequence[StreamState], field_tables: FieldTables
) -> None:
    """Write everything that the streams have pending.

    Raises:
        StreamConflict: the stored sequence number of a stream is not the one it was read with.
    """
    if not states:
        return
    _write_rows(connection, states, field_tables)
    _update_streams(connection, states)
    for state in states:
        _cascade(connection, state)


def _write_rows(
    connection: Connection, states: Sequence[StreamState], field_tables: FieldTables
) -> None:
    chunks: list[Row] = []
    heads: list[Row] = []
    rollups: list[Row] = []
    events: list[Row] = []
    receipts: list[Row] = []
    for state in states:
        pending = state.pending
        for layout, row in pending.chunks:
            chunks.append(row | {"field_table_id": field_tables.id_of(connection, layout)})
        for layout, row in pending.heads:
            heads.append(row | {"field_table_id": field_tables.id_of(connection, layout)})
        for layout, rollup_row in pending.rollups:
            rollups.append(
                rollup_row._asdict()
                | {
                    "stream_id": state.stream_id,
                    "field_table_id": field_tables.id_of(connection, layout),
                }
            )
        events.extend(pending.events)
        receipts.extend(
            receipt_row(state.run_id, state.rank, item)
            for item in pending.updates
            # Refused for a step that is over: kept as final, it would stand against what follows.
            if item.is_last_word or item.state not in FINAL_STATES
        )
    for table, rows in (
        (tables.chunks, chunks),
        (tables.rollups, rollups),
        (tables.heads, heads),
        (tables.events, events),
    ):
        if rows:
            connection.execute(insert(table), rows)
    if chunks:
        # After the heads: one that was prepared for an attempt that failed may be sealed by now.
        connection.execute(_delete_heads, [_sealed_heads(chunk) for chunk in chunks])
    write_receipts(connection, receipts)


def _sealed_heads(chunk: Row) -> Row:
    return {
        "sealed_stream": chunk["stream_id"],
        "sealed_kind": chunk["kind"],
        "sealed_end": chunk["start_position"] + chunk["row_count"],
    }


def _update_streams(connection: Connection, states: Sequence[StreamState]) -> None:
    ends = [state for state in states if state.pending.end]
    rows = [
        {
            "stream_id": state.stream_id,
            "committed_seq": state.committed_seq,
            "new_seq": state.last_seq,
            "seen_ns": state.last_seen_ns,
            "new_summary": msgspec.json.encode(state.summary).decode(),
        }
        for state in states
    ]
    if connection.execute(_update_stream, rows).rowcount != len(rows):
        raise StreamConflict(f"expected {len(rows)} streams as they were read")
    for state in ends:
        connection.execute(
            update(tables.streams)
            .where(tables.streams.c.id == state.stream_id)
            .values(**state.pending.end)
        )


def _cascade(connection: Connection, state: StreamState) -> None:
    """Merge rollups upwards, only when a window ended: most commits need no look at them."""
    if not state.pending.rollups:
        return
    open_ns = state.pending.rollups[-1][1].start_ns
    window = open_ns // _CASCADE_WINDOW_NS
    if window != state.cascaded_window:
        rollup_cascade.cascade(connection, state.stream_id, open_ns)
        state.pending.cascaded_window = window


def receipt_row(run_id: str, rank: int, item: CommandUpdate) -> Row:
    """Row of the receipts table."""
    return {
        "command_id": item.id,
        "run_id": run_id,
        "rank": rank,
        "state": item.state,
        "time_ns": item.time_ns,
        "receipt": msgspec.json.encode(item.receipt).decode() if item.receipt else "{}",
    }


def write_receipts(connection: Connection, rows: Sequence[Row]) -> None:
    """Insert or replace receipts; a final one stays what it is."""
    upsert(
        connection,
        tables.receipts,
        rows,
        keys=("command_id", "rank", "run_id"),
        # Spelled out: NOT IN expands its list when it runs, which executemany cannot.
        where=and_(*(tables.receipts.c.state != state for state in sorted(FINAL_STATES))),
    )
