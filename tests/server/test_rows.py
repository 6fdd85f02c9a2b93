from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import FIELDS, made_columns, made_rows
from vramscope_protocol.columns import UNKNOWN, decode_columns, encode_columns
from vramscope_protocol.messages import Field
from vramscope_server.rows import ColumnLayout, Rows, json_values


@given(codes=st.lists(st.sampled_from("qdf"), min_size=0, max_size=8), count=st.integers(1, 20))
def test_rows_hold_what_the_batch_says_whatever_the_types(codes: list[str], count: int) -> None:
    random = np.random.default_rng(len(codes))
    fields = [Field("time_ns", "q"), Field("step", "q")]
    fields += [Field(f"f{n}", code) for n, code in enumerate(codes)]  # type: ignore[arg-type]  # qdf
    body = encode_columns(
        array(field.code, random.integers(-(2**20), 2**20, count).tolist()) for field in fields
    )
    rows = Rows.from_batch("step", 5, ColumnLayout(fields), count, body)
    assert len(rows) == count
    assert rows.names == [field.name for field in fields]
    for at, expected in enumerate(decode_columns(body, len(fields), count)):
        assert rows.column_at(at).tolist() == list(expected)
    back = Rows.from_bytes("step", 5, rows.layout, count, rows.to_bytes())
    assert back.to_bytes() == rows.to_bytes()
    for group in rows.groups():
        for position, values in zip(group.positions, group.values, strict=True):
            assert fields[position].code == group.code
            np.testing.assert_array_equal(values, rows.column_at(position))


def test_parts_and_joins() -> None:
    rows = made_rows(made_columns(30), first_index=100)
    parts = [rows.part(0, 7), rows.part(7, 8), rows.part(8, 30)]
    assert [part.first_index for part in parts] == [100, 107, 108]
    assert Rows.join(parts).to_bytes() == rows.to_bytes()
    assert Rows.join(parts[:1]) is parts[0]


def test_columns_by_name() -> None:
    columns = made_columns(10)
    rows = made_rows(columns)
    assert rows.column("nonsense") is None
    for name, values in columns.items():
        np.testing.assert_array_equal(rows.column(name), values)
    assert rows.time_ns.tolist() == columns["time_ns"].tolist()
    assert rows.step.tolist() == columns["step"].tolist()
    assert rows.layout.row_bytes() == 5 * 8 + 4


def test_equal_field_tables_have_one_fingerprint() -> None:
    assert ColumnLayout(FIELDS).fingerprint == ColumnLayout(list(FIELDS)).fingerprint
    assert ColumnLayout(FIELDS).fingerprint != ColumnLayout(FIELDS[::-1]).fingerprint


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, UNKNOWN, 2**62]), [1, None, 2**62]),
        (np.array([1.5, np.nan, np.inf, -np.inf]), [1.5, None, None, None]),
        (np.array([0.5, np.nan], np.float32), [0.5, None]),
        (np.array([], np.int64), []),
    ],
)
def test_what_json_cannot_say_is_null(
    values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], expected: list[object]
) -> None:
    assert json_values(values) == expected
