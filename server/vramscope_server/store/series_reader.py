"""Reads series of one rank over any span of time from a bounded number of stored rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, select

from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import BatchKind
from vramscope_protocol.series import TIME_NS
from vramscope_server.rows import ColumnLayout, Rows, json_values
from vramscope_server.store import downsampling, rollup, tables
from vramscope_server.store.blob_reader import open_body
from vramscope_server.store.column_codec import read_column, read_layout
from vramscope_server.store.database import Database
from vramscope_server.store.field_tables import load_layout
from vramscope_server.store.rollup import Buckets
from vramscope_server.store.rollup_cascade import covered_position
from vramscope_server.store.runs import stream_ids
from vramscope_server.store.stream_state import load_heads, sealed_position

_SAMPLE: BatchKind = "sample"


@dataclass(frozen=True)
class Series:
    """Points of some series: lowest, mean and highest value of each, and its time.

    ``resolution_ms`` is 0 when the points are the samples themselves. ``stored_rows`` says how
    many rows of the database were read.
    """

    resolution_ms: float
    time_ns: NDArray[np.int64]
    columns: dict[str, Buckets]
    stored_rows: int = 0

    def payload(self, rank: int) -> dict[str, Any]:
        """As the REST API has it."""
        return {
            "rank": rank,
            "resolution_ms": self.resolution_ms,
            "time_ns": self.time_ns.tolist(),
            "columns": {
                name: {
                    "min": json_values(buckets.minimum),
                    "mean": json_values(buckets.mean),
                    "max": json_values(buckets.maximum),
                }
                for name, buckets in self.columns.items()
            },
        }


class _Part(NamedTuple):
    """What one stored row holds of the wanted fields; ``None`` for a field that it lacks."""

    times: Buckets
    columns: list[Buckets | None]


class _Reading:
    """One call of :meth:`SeriesReader.series`: what is wanted, and the parts found so far."""

    def __init__(
        self, connection: Connection, fields: Sequence[str], start_ns: int, end_ns: int
    ) -> None:
        self.connection = connection
        self.fields = fields
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.parts: list[_Part] = []
        self.stored_rows = 0
        self._layouts: dict[int, ColumnLayout] = {}

    def read_rollups(self, stream_id: int, level_s: int, position: int) -> None:
        """Take the buckets of one level from ``position`` on."""
        table = tables.rollups
        query = select(table.c.id, table.c.field_table_id).where(
            table.c.stream_id == stream_id,
            table.c.level_s == level_s,
            table.c.start_position >= position,
            table.c.end_ns >= self.start_ns,
            table.c.start_ns <= self.end_ns,
        )
        for row in self.connection.execute(query.order_by(table.c.start_position)).all():
            self._take_body(table, row.id, row.field_table_id, is_rollup=True)

    def read_chunks(self, stream_id: int) -> None:
        """Take the sealed samples themselves."""
        table = tables.chunks
        query = select(table.c.id, table.c.field_table_id).where(
            table.c.stream_id == stream_id,
            table.c.kind == _SAMPLE,
            table.c.end_ns >= self.start_ns,
            table.c.start_ns <= self.end_ns,
        )
        for row in self.connection.execute(query.order_by(table.c.start_position)).all():
            self._take_body(table, row.id, row.field_table_id, is_rollup=False)

    def read_heads(self, heads: Sequence[Rows]) -> None:
        """Take the samples that are in no chunk yet."""
        for rows in heads:
            self.stored_rows += 1
            columns = [rows.column(name) for name in self.fields]
            self._take(
                rollup.of_rows(rows.time_ns),
                [None if column is None else rollup.of_rows(column) for column in columns],
            )

    def _take_body(
        self, table: Table, row_id: int, field_table_id: int, *, is_rollup: bool
    ) -> None:
        layout = self._layouts.get(field_table_id)
        if layout is None:
            layout = load_layout(self.connection, field_table_id)
            self._layouts[field_table_id] = layout
        unpack = rollup.from_column if is_rollup else rollup.of_rows
        self.stored_rows += 1
        with open_body(self.connection, table, row_id) as read:
            chunk = read_layout(read)
            self._take(
                unpack(read_column(read, chunk, layout.index[TIME_NS])),
                [
                    unpack(read_column(read, chunk, layout.index[name]))
                    if name in layout.index
                    else None
                    for name in self.fields
                ],
            )

    def _take(self, times: Buckets, columns: list[Buckets | None]) -> None:
        """Keep the buckets that touch the wanted span."""
        first, last = int(times.minimum[0]), int(times.maximum[-1])
        if self.start_ns <= first and last <= self.end_ns:
            self.parts.append(_Part(times, columns))
            return
        keep = np.flatnonzero((times.maximum >= self.start_ns) & (times.minimum <= self.end_ns))
        if len(keep):
            self.parts.append(
                _Part(
                    times.part(keep),
                    [None if column is None else column.part(keep) for column in columns],
                )
            )

    def joined(self) -> tuple[NDArray[np.int64], dict[str, Buckets]]:
        """All parts behind one another, by time."""
        times = np.concatenate([part.times.mean for part in self.parts])
        columns = {
            name: rollup.join(
                _same_type(
                    [part.columns[at] for part in self.parts],
                    [len(part.times.known) for part in self.parts],
                )
            )
            for at, name in enumerate(self.fields)
        }
        if (times[1:] < times[:-1]).any():
            # Two lives of a rank that overlap: a new process before the old one was done.
            order = np.argsort(times, kind="stable")
            times = times[order]
            columns = {name: buckets.part(order) for name, buckets in columns.items()}
        return times, columns


def _same_type(parts: Sequence[Buckets | None], sizes: Sequence[int]) -> list[Buckets]:
    """Parts of one value type; a field that is integer here and float there becomes float."""
    types = {part.minimum.dtype for part in parts if part is not None}
    dtype = types.pop() if len(types) == 1 else np.dtype(np.float64)
    unknown = UNKNOWN if dtype.kind == "i" else np.nan
    same: list[Buckets] = []
    for part, size in zip(parts, sizes, strict=True):
        if part is None:
            nothing = np.full(size, unknown, dtype)
            zeros = np.zeros(size, np.int64)
            same.append(Buckets(nothing, nothing, nothing, nothing, zeros))
        elif part.minimum.dtype == dtype:
            same.append(part)
        else:
            same.append(
                Buckets(
                    _as_float(part.minimum),
                    _as_float(part.mean),
                    _as_float(part.maximum),
                    _as_float(part.last),
                    part.known,
                )
            )
    return same


def _as_float(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind != "i":
        return values.astype(np.float64)
    return np.where(values == UNKNOWN, np.nan, values.astype(np.float64))


class SeriesReader:
    """Reads series; each call on a connection of its own, so it may be used in any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def series(
        self,
        run_id: str,
        rank: int,
        fields: Sequence[str],
        start_ns: int | None = None,
        end_ns: int | None = None,
        points: int = 2000,
    ) -> Series:
        """Some fields of a rank over a span of time, in at most ``points`` points.

        The span is read at the coarsest level that has at least one bucket a point; what is too
        new for that level comes from the finer ones, and the newest from the samples themselves.
        A field that the rank never sent is unknown throughout. A span that reaches beyond what
        there is counts from the first to the last sample.
        """
        points = max(1, points)
        with self._database.read() as connection:
            streams = {
                stream_id: _open_rows(connection, stream_id)
                for stream_id in stream_ids(connection, run_id, rank)
            }
            extent = _extent(connection, streams)
            if extent is None:
                return _nothing(fields)
            start_ns = extent[0] if start_ns is None else max(start_ns, extent[0])
            end_ns = extent[1] if end_ns is None else min(end_ns, extent[1])
            level_s = _level(start_ns, end_ns, points)
            reading = _Reading(connection, fields, start_ns, end_ns)
            for stream_id, heads in streams.items():
                _read_stream(reading, stream_id, heads, level_s)
        if not reading.parts:
            return _nothing(fields)
        times, columns = reading.joined()
        binned = downsampling.bin_by_time(times, columns, start_ns, end_ns, points)
        resolution_ms = binned.bin_ns / 1e6 if binned.bin_ns else level_s * 1000.0
        return Series(resolution_ms, binned.time_ns, binned.columns, reading.stored_rows)


def _level(start_ns: int, end_ns: int, points: int) -> int:
    """Coarsest level with at least one bucket a point; 0 for the samples themselves."""
    point_ns = (end_ns - start_ns) / points
    fitting = [level for level in rollup.LEVELS_S if level * 1_000_000_000 <= point_ns]
    return max(fitting, default=0)


def _read_stream(reading: _Reading, stream_id: int, heads: Sequence[Rows], level_s: int) -> None:
    position = 0
    for level in sorted(rollup.LEVELS_S, reverse=True):
        if level <= level_s:
            reading.read_rollups(stream_id, level, position)
            position = max(position, covered_position(reading.connection, stream_id, level))
    if level_s == 0:
        reading.read_chunks(stream_id)
    reading.read_heads(heads)


def _open_rows(connection: Connection, stream_id: int) -> list[Rows]:
    position = sealed_position(connection, stream_id, _SAMPLE)
    return load_heads(connection, stream_id, _SAMPLE, position)


def _extent(
    connection: Connection, streams: Mapping[int, Sequence[Rows]]
) -> tuple[int, int] | None:
    """Time of the first and the last sample."""
    table = tables.chunks
    times: list[int] = []
    for stream_id, heads in streams.items():
        of_stream = (table.c.stream_id == stream_id) & (table.c.kind == _SAMPLE)
        for column, order in (
            (table.c.start_ns, table.c.start_position),
            (table.c.end_ns, table.c.start_position.desc()),
        ):
            found = connection.scalar(select(column).where(of_stream).order_by(order).limit(1))
            if found is not None:
                times.append(found)
        if heads:
            times += [int(heads[0].time_ns[0]), int(heads[-1].time_ns[-1])]
    return (min(times), max(times)) if times else None


def _nothing(fields: Sequence[str]) -> Series:
    empty = rollup.of_rows(np.empty(0, np.float64))
    return Series(0.0, np.empty(0, np.int64), dict.fromkeys(fields, empty))
