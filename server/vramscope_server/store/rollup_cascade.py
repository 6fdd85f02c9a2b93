"""Stored rollup rows: one of 1 s buckets for each sealed chunk, merged upwards as windows end.

Every row says which sample positions it covers. A level covers the positions up to its last row;
what comes after is covered by the next finer level. So there is always exactly one way to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, insert, select

from vramscope_protocol.series import TIME_NS
from vramscope_server.rows import ColumnGroup, ColumnLayout, Rows
from vramscope_server.store import rollup, tables
from vramscope_server.store.column_codec import (
    decode_chunk,
    encode_groups,
    group_columns,
)
from vramscope_server.store.field_tables import load_layout

_COARSER = {1: 10, 10: 60}


class RollupRow(NamedTuple):
    """One row of the table, still without stream and field table."""

    level_s: int
    start_position: int
    end_position: int
    start_ns: int
    end_ns: int
    body: bytes


def of_chunk(rows: Rows, start_position: int) -> RollupRow:
    """The 1 s buckets of a sealed chunk."""
    times = rows.time_ns
    return RollupRow(
        1,
        start_position,
        start_position + len(rows),
        int(times[0]),
        int(times[-1]),
        _merged_body([(group, rollup.of_rows(group.values)) for group in rows.groups()], times, 1),
    )


def _merged_body(
    groups: Sequence[tuple[ColumnGroup, rollup.Buckets]], times: NDArray[np.int64], level_s: int
) -> bytes:
    starts = rollup.group_starts(times // (level_s * 1_000_000_000))
    return encode_groups(
        [
            group._replace(values=rollup.to_column(rollup.merge(buckets, starts)))
            for group, buckets in groups
        ]
    )


def cascade(connection: Connection, stream_id: int, open_ns: int) -> None:
    """Merge the rows of every window that ended before ``open_ns`` into the coarser levels."""
    for level_s, coarser_s in _COARSER.items():
        _merge_level(connection, stream_id, level_s, coarser_s, open_ns)


def covered_position(connection: Connection, stream_id: int, level_s: int) -> int:
    """Position up to which this level covers the samples of a stream."""
    table = tables.rollups
    end = connection.scalar(
        select(table.c.end_position)
        .where(table.c.stream_id == stream_id, table.c.level_s == level_s)
        .order_by(table.c.start_position.desc())
        .limit(1)
    )
    return int(end or 0)


def _merge_level(
    connection: Connection, stream_id: int, level_s: int, coarser_s: int, open_ns: int
) -> None:
    table = tables.rollups
    window = rollup.window_ns(coarser_s)
    waiting = connection.execute(
        select(table)
        .where(
            table.c.stream_id == stream_id,
            table.c.level_s == level_s,
            table.c.start_position >= covered_position(connection, stream_id, coarser_s),
            table.c.start_ns < open_ns // window * window,
        )
        .order_by(table.c.start_position)
    ).all()
    for (_, field_table_id), group in groupby(
        waiting, key=lambda row: (row.start_ns // window, row.field_table_id)
    ):
        rows = list(group)
        layout = load_layout(connection, field_table_id)
        connection.execute(
            insert(table).values(
                stream_id=stream_id,
                field_table_id=field_table_id,
                level_s=coarser_s,
                start_position=rows[0].start_position,
                end_position=rows[-1].end_position,
                start_ns=rows[0].start_ns,
                end_ns=rows[-1].end_ns,
                body=_merged_rows([row.body for row in rows], layout, coarser_s),
            )
        )


def _merged_rows(bodies: Sequence[bytes], layout: ColumnLayout, level_s: int) -> bytes:
    decoded = [group_columns(decode_chunk(body), layout.codes) for body in bodies]
    groups = [
        (parts[0], rollup.join([rollup.from_column(part.values) for part in parts]))
        for parts in zip(*decoded, strict=True)
    ]
    time_row = layout.codes[: layout.index[TIME_NS]].count("q")
    times = next(buckets.minimum[time_row] for group, buckets in groups if group.code == "q")
    return _merged_body(groups, times, level_s)
