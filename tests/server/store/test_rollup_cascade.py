from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Row, select

from tests.support.commits import Commits
from tests.support.streams import (
    FIELDS,
    START_NS,
    made_batches,
    made_columns,
    made_rows,
    open_store,
    register_stream,
    submission_of,
)
from vramscope_protocol.columns import UNKNOWN
from vramscope_server.rows import ColumnLayout
from vramscope_server.store import rollup, tables
from vramscope_server.store.column_codec import decode_chunk
from vramscope_server.store.rollup_cascade import covered_position, of_chunk
from vramscope_server.store.store import Store
from vramscope_server.store.writer import WriterLimits

COUNT = 9000  # two and a half hours at 1 Hz


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(Path(tmp_path_factory.mktemp("cascade")))
    commits = Commits()
    # Many commits, so that windows end in some of them and not in others.
    store.start(commits.on_commit, commits.on_stream_failed, WriterLimits(commit_bytes=1))
    register_stream(store)
    layout = ColumnLayout(FIELDS)
    for batch in made_batches(made_columns(COUNT, rate_hz=1.0), rows=100):
        assert store.submit(submission_of("stream-a", batch, layout))
    commits.wait_for_ack("stream-a", COUNT // 100)
    store.stop()
    yield store
    store.close()


def stored(store: Store, level_s: int) -> list[Row[tuple[object, ...]]]:
    table = tables.rollups
    query = select(table).where(table.c.level_s == level_s).order_by(table.c.start_position)
    return list(store.read_now(lambda connection: connection.execute(query).all()))


@pytest.mark.parametrize("level_s", [1, 10, 60])
def test_every_level_is_a_chain_of_whole_windows(store: Store, level_s: int) -> None:
    rows = stored(store, level_s)
    assert rows
    window = rollup.window_ns(level_s)
    position = 0
    for row in rows:
        assert row.start_position == position
        position = row.end_position
        assert row.start_ns // window == row.end_ns // window
    windows = [row.start_ns // window for row in rows]
    assert len(set(windows)) == len(windows)
    assert store.read_now(lambda c: covered_position(c, rows[0].stream_id, level_s)) == position


@pytest.mark.parametrize("level_s", [1, 10, 60])
def test_buckets_equal_the_rows_that_they_cover(store: Store, level_s: int) -> None:
    columns = made_columns(COUNT, rate_hz=1.0)
    at = [field.name for field in FIELDS].index("device.used_bytes")
    for row in stored(store, level_s):
        buckets = rollup.from_column(decode_chunk(row.body)[at])
        assert len(buckets.known) <= rollup.ROW_BUCKETS
        covered = slice(row.start_position, row.end_position)
        times = columns["time_ns"][covered] // (level_s * 10**9)
        values = columns["device.used_bytes"][covered]
        for number, key in enumerate(np.unique(times)):
            inside = values[times == key]
            inside = inside[inside != UNKNOWN]
            assert buckets.known[number] == len(inside)
            assert buckets.maximum[number] == (inside.max() if len(inside) else UNKNOWN)
            assert buckets.minimum[number] == (inside.min() if len(inside) else UNKNOWN)


def test_a_level_that_covers_nothing_starts_at_zero(store: Store) -> None:
    assert store.read_now(lambda connection: covered_position(connection, 999, 60)) == 0


def test_a_chunk_becomes_one_row_of_seconds() -> None:
    row = of_chunk(made_rows(made_columns(50)), 1000)
    assert (row.level_s, row.start_position, row.end_position) == (1, 1000, 1050)
    assert row.start_ns >= START_NS
    assert len(rollup.from_column(decode_chunk(row.body)[0]).known) == 5
