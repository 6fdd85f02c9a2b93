"""Reads the exact rows of optimizer steps of one rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import TOO_LARGE, VramscopeError
from vramscope_protocol.messages import BatchKind, Field
from vramscope_protocol.series import STEP, TIME_NS
from vramscope_server.rows import ColumnLayout, json_values
from vramscope_server.store import tables
from vramscope_server.store.blob_reader import open_body
from vramscope_server.store.column_codec import read_column, read_layout
from vramscope_server.store.database import Database
from vramscope_server.store.downsampling import peak_rows
from vramscope_server.store.field_tables import load_layout
from vramscope_server.store.runs import stream_ids
from vramscope_server.store.stream_state import load_heads, sealed_position

Column = NDArray[Any]

MAX_ROWS: Final = 100_000
"""Most rows of one answer: as many as a day brings at a step a second, and 10 MB of JSON."""

_STEP_KIND: BatchKind = "step"
_PEAKS = (
    ("step.peak_reserved_bytes", "reserved_bytes.all.peak", "reserved_bytes.all.current"),
    ("step.peak_allocated_bytes", "allocated_bytes.all.peak", "allocated_bytes.all.current"),
)
"""What a thinned-out answer must keep the highest row of; of each the first that a row knows."""


@dataclass(frozen=True)
class Steps:
    """One row an optimizer step, values exactly as the agent sent them."""

    step: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    life: NDArray[np.int64]
    """Which life of the rank a row is of, counted from 0; its step numbers are its own."""
    columns: dict[str, Column]

    def payload(self) -> dict[str, Any]:
        """As the REST API has it."""
        return {
            "step": json_values(self.step),
            "time_ns": self.time_ns.tolist(),
            "life": self.life.tolist(),
            "columns": {name: json_values(column) for name, column in self.columns.items()},
        }


class _Part(NamedTuple):
    """Rows of one stored row; columns by name."""

    rows: int
    columns: dict[str, Column]


class _Chunk(NamedTuple):
    """One stored row, without its body."""

    id: int
    field_table_id: int
    rows: int


class StepReader:
    """Reads steps; each call on a connection of its own, so it may be used in any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def steps(
        self,
        run_id: str,
        rank: int,
        fields: Sequence[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        points: int | None = None,
        life: int | None = None,
    ) -> Steps:
        """Rows of the steps ``start`` to ``end``, both included, life after life of a rank.

        Args:
            fields: series wanted; all that there are if not given.
            points: at most this many rows. Of each stretch of steps the rows with the highest
                reserved and allocated memory are kept, never an average.
            life: only the rows of this life; of all if not given.

        Raises:
            VramscopeError: ``too_large``: more rows than an answer may hold, and no ``points``.
        """
        parts: list[_Part] = []
        lives: list[NDArray[np.int64]] = []
        with self._database.read() as connection:
            wanted = None if fields is None else _with_needed(fields, points)
            for number, stream_id in enumerate(stream_ids(connection, run_id, rank)):
                if life not in (None, number):
                    continue
                chunks = _find_chunks(connection, stream_id, start, end)
                _check_size(chunks, points)
                found = _read_chunks(connection, chunks, wanted)
                found += _read_heads(connection, stream_id, wanted)
                parts += found
                lives.append(np.full(sum(part.rows for part in found), number, np.int64))
        if not parts:
            empty = np.empty(0, np.int64)
            return Steps(empty, empty, empty, dict.fromkeys(fields or (), empty))
        life_of_row = np.concatenate(lives)
        names = list(dict.fromkeys(name for part in parts for name in part.columns))
        columns = {name: _joined(parts, name) for name in {*names, *(fields or ())}}
        keep = _wanted_rows(columns, life_of_row, start, end, points)
        shown = [name for name in (fields or names) if name not in (STEP, TIME_NS)]
        return Steps(
            columns[STEP][keep],
            columns[TIME_NS][keep],
            life_of_row[keep],
            {name: columns[name][keep] for name in shown},
        )

    def field_names(self, run_id: str, rank: int, kind: BatchKind = "sample") -> list[Field]:
        """Every field that a rank ever sent in rows of that kind."""
        found: dict[str, Field] = {}
        with self._database.read() as connection:
            ids = stream_ids(connection, run_id, rank)
            for table in (tables.chunks, tables.heads):
                query = select(table.c.field_table_id).where(
                    table.c.stream_id.in_(ids), table.c.kind == kind
                )
                for field_table_id in connection.scalars(query.distinct()).all():
                    for field in load_layout(connection, field_table_id).fields:
                        found.setdefault(field.name, field)
        return list(found.values())


def _check_size(chunks: Sequence[_Chunk], points: int | None) -> None:
    rows = sum(chunk.rows for chunk in chunks)
    if points is None and rows > MAX_ROWS:
        raise VramscopeError(
            TOO_LARGE,
            f"expected a range of at most {MAX_ROWS} steps, got one of {rows}; "
            "ask for points, or for fewer steps with start and end",
        )


def _with_needed(fields: Sequence[str], points: int | None) -> list[str]:
    peaks = [name for names in _PEAKS for name in names] if points is not None else []
    return list(dict.fromkeys([STEP, TIME_NS, *fields, *peaks]))


def _find_chunks(
    connection: Connection, stream_id: int, start: int | None, end: int | None
) -> Sequence[_Chunk]:
    """Chunks that touch a range of steps, without their bodies."""
    table = tables.chunks
    query = select(table.c.id, table.c.field_table_id, table.c.row_count).where(
        table.c.stream_id == stream_id, table.c.kind == _STEP_KIND
    )
    if start is not None:
        query = query.where(table.c.last_step >= start)
    if end is not None:
        query = query.where(table.c.first_step <= end)
    rows = connection.execute(query.order_by(table.c.start_position)).all()
    return [_Chunk(row.id, row.field_table_id, row.row_count) for row in rows]


def _read_chunks(
    connection: Connection,
    chunks: Sequence[_Chunk],
    wanted: Sequence[str] | None,
) -> list[_Part]:
    layouts: dict[int, ColumnLayout] = {}
    parts: list[_Part] = []
    for stored in chunks:
        layout = layouts.get(stored.field_table_id)
        if layout is None:
            layout = layouts[stored.field_table_id] = load_layout(connection, stored.field_table_id)
        names = layout.index if wanted is None else [n for n in wanted if n in layout.index]
        with open_body(connection, tables.chunks, stored.id) as read:
            chunk = read_layout(read)
            columns = {name: read_column(read, chunk, layout.index[name]) for name in names}
        parts.append(_Part(chunk.rows, columns))
    return parts


def _read_heads(
    connection: Connection, stream_id: int, wanted: Sequence[str] | None
) -> list[_Part]:
    position = sealed_position(connection, stream_id, _STEP_KIND)
    parts: list[_Part] = []
    for rows in load_heads(connection, stream_id, _STEP_KIND, position):
        names = rows.names if wanted is None else wanted
        found = {name: rows.column(name) for name in names}
        columns = {name: column for name, column in found.items() if column is not None}
        parts.append(_Part(len(rows), columns))
    return parts


def _joined(parts: Sequence[_Part], name: str) -> Column:
    """One column over all parts; unknown where a part lacks it."""
    types = {part.columns[name].dtype for part in parts if name in part.columns}
    dtype = types.pop() if len(types) == 1 else np.dtype(np.float64)
    unknown = UNKNOWN if dtype.kind == "i" else np.nan
    pieces: list[Column] = []
    for part in parts:
        piece = part.columns.get(name)
        if piece is None:
            piece = np.full(part.rows, unknown, dtype)
        elif piece.dtype != dtype and piece.dtype.kind == "i":
            piece = np.where(piece == UNKNOWN, np.nan, piece.astype(np.float64))
        pieces.append(piece.astype(dtype, copy=False))
    return np.concatenate(pieces)


def _wanted_rows(
    columns: dict[str, Column],
    lives: NDArray[np.int64],
    start: int | None,
    end: int | None,
    points: int | None,
) -> NDArray[np.intp]:
    """Positions of the rows to answer: by life, since clocks of two hosts differ, then by time."""
    step, times = columns[STEP], columns[TIME_NS]
    keep = np.ones(len(step), np.bool_)
    if start is not None:
        keep &= step >= start
    if end is not None:
        keep &= step <= end
    positions = np.flatnonzero(keep)
    positions = positions[np.lexsort((times[positions], lives[positions]))]
    if points is None:
        return positions
    peaks = [
        _first_known([columns[name][positions] for name in names if name in columns])
        for names in _PEAKS
        if any(name in columns for name in names)
    ]
    return positions[peak_rows(peaks, len(positions), max(1, points))]


def _first_known(choices: Sequence[Column]) -> Column:
    """Row by row the first value that is known: not every life of a rank tells the same."""
    best, *others = choices
    for other in others:
        is_unknown = best == UNKNOWN if best.dtype.kind == "i" else np.isnan(best)
        best = np.where(is_unknown, other, best)
    return best
