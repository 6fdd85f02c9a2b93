from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import FIELDS, SECOND_NS, made_columns, made_rows
from vramscope_protocol.messages import Field
from vramscope_server.rows import Rows
from vramscope_server.store.chunk_builder import CHUNK_NS, MAX_CHUNK_ROWS, ChunkBuilder, SealedChunk

MINUTE_START_NS = 1_700_000_040 * SECOND_NS  # on a minute
assert MINUTE_START_NS % CHUNK_NS == 0


@given(
    count=st.integers(1, 900),
    batch=st.integers(1, 400),
    rate_hz=st.sampled_from([0.05, 1.0, 10.0, 100.0]),
    seed=st.integers(0, 3),
)
def test_chunks_are_the_rows_in_order_and_never_cross_a_minute(
    count: int, batch: int, rate_hz: float, seed: int
) -> None:
    rows = made_rows(made_columns(count, seed=seed, rate_hz=rate_hz))
    builder = ChunkBuilder()
    sealed: list[SealedChunk] = []
    for start in range(0, count, batch):
        sealed += builder.append(rows.part(start, min(count, start + batch)))
    assert builder.position == sum(len(chunk.rows) for chunk in sealed)
    assert builder.end_position == count
    parts = [*(chunk.rows for chunk in sealed), *builder.open_rows(0)]
    assert np.concatenate([part.time_ns for part in parts]).tolist() == rows.time_ns.tolist()
    position = 0
    for start_position, chunk in sealed:
        assert start_position == position
        position += len(chunk)
        assert 0 < len(chunk) <= MAX_CHUNK_ROWS
        assert chunk.time_ns[0] // CHUNK_NS == chunk.time_ns[-1] // CHUNK_NS
    for (_, before), (_, after) in pairwise(sealed):
        full = len(before) == MAX_CHUNK_ROWS
        assert full or before.time_ns[-1] // CHUNK_NS < after.time_ns[0] // CHUNK_NS


def test_a_full_chunk_is_sealed_at_once() -> None:
    rows = made_rows(made_columns(600, rate_hz=100.0, start_ns=MINUTE_START_NS))
    builder = ChunkBuilder()
    assert builder.append(rows.part(0, 599)) == []
    ((_, chunk),) = builder.append(rows.part(599, 600))
    assert len(chunk) == 600
    assert len(builder) == 0


def test_steps_fill_chunks_however_long_they_take() -> None:
    rows = made_rows(made_columns(700, rate_hz=0.5, start_ns=MINUTE_START_NS), kind="step")
    builder = ChunkBuilder(by_minute=False)
    sealed = [chunk for at in range(700) for chunk in builder.append(rows.part(at, at + 1))]
    assert [len(chunk.rows) for chunk in sealed] == [600]
    assert len(builder) == 100


def test_another_field_table_seals() -> None:
    columns = made_columns(20, start_ns=MINUTE_START_NS)
    builder = ChunkBuilder()
    builder.append(made_rows(columns).part(0, 10))
    other = [*FIELDS[:3], Field("device.used_bytes", "q", "other unit"), *FIELDS[4:]]
    ((_, chunk),) = builder.append(made_rows(columns, fields=other).part(10, 20))
    assert len(chunk) == 10


def test_the_same_field_table_from_another_connection_does_not_seal() -> None:
    columns = made_columns(20, start_ns=MINUTE_START_NS)
    builder = ChunkBuilder()
    builder.append(made_rows(columns).part(0, 10))
    assert builder.append(made_rows(columns).part(10, 20)) == []
    assert len(builder) == 20


def test_a_jump_of_the_index_seals() -> None:
    columns = made_columns(20, start_ns=MINUTE_START_NS)
    builder = ChunkBuilder()
    builder.append(made_rows(columns).part(0, 10))
    ((_, chunk),) = builder.append(made_rows(columns, first_index=100).part(10, 20))
    assert chunk.first_index == 0
    assert builder.seal().rows.first_index == 110


def test_open_rows_from_a_position_within_a_part() -> None:
    rows = made_rows(made_columns(30, start_ns=MINUTE_START_NS))
    builder = ChunkBuilder(position=1000)
    for start in (0, 10, 20):
        builder.append(rows.part(start, start + 10))
    joined = Rows.join(builder.open_rows(1015))
    assert joined.first_index == 15
    assert joined.time_ns.tolist() == rows.time_ns[15:].tolist()
    assert builder.open_rows(1030) == []
