"""Column batches: exact round trips, and every malformed body refused."""

from __future__ import annotations

import math
import sys
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope_protocol.columns import (
    ITEM_BYTES,
    UNKNOWN,
    column_slices,
    decode_columns,
    encode_columns,
    holds_columns,
)
from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError

int64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def columns(draw: st.DrawFn) -> list[array[Any]]:
    rows = draw(st.integers(0, 5))
    values = {"q": int64, "d": st.floats(), "f": st.floats(width=32)}
    codes = draw(st.lists(st.sampled_from("qdf"), max_size=6))
    return [
        array(code, draw(st.lists(values[code], min_size=rows, max_size=rows))) for code in codes
    ]


@given(columns())
def test_round_trip_is_exact(table: list[array[Any]]) -> None:
    rows = len(table[0]) if table else 3
    body = encode_columns(table)
    # Compared as bytes, so that NaN equals NaN and -0.0 does not equal 0.0.
    assert [bytes(memoryview(c)) for c in decode_columns(body, len(table), rows)] == [  # type: ignore[arg-type]  # an array is a buffer
        column.tobytes() for column in table
    ]


def test_layout_is_type_byte_then_little_endian_values() -> None:
    body = encode_columns([array("q", [1, -1]), array("f", [0.5])])
    assert body == b"q" + (1).to_bytes(8, "little") + b"\xff" * 8 + b"f" + b"\x00\x00\x00\x3f"


def test_slices_name_type_and_offset() -> None:
    body = encode_columns([array("q", [1, 2]), array("f", [1, 2]), array("d", [1, 2])])
    assert column_slices(body, 3, 2) == [("q", 1), ("f", 18), ("d", 27)]
    assert ITEM_BYTES == {"q": 8, "d": 8, "f": 4}


def test_unknown_survives_the_wire() -> None:
    body = encode_columns([array("q", [UNKNOWN]), array("d", [math.nan])])
    integers, floats = decode_columns(body, 2, 1)
    assert integers[0] == UNKNOWN
    assert math.isnan(floats[0])


def test_big_endian_machines_send_and_read_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    table: list[array[Any]] = [array("q", [1, 2]), array("d", [0.5, 3])]
    little = encode_columns(table)
    monkeypatch.setattr(sys, "byteorder", "big")
    # On a big-endian machine the array in memory has the swapped bytes of this one.
    for column in table:
        column.byteswap()
    assert encode_columns(table) == little
    assert decode_columns(little, 2, 2) == table


@pytest.mark.parametrize(
    ("body", "fields", "rows", "says"),
    [
        (b"", 1, 1, "expected a column type .q, d or f. for column 0, got ''"),
        (b"x" + bytes(8), 1, 1, "got 'x'"),
        (b"\xff" + bytes(8), 1, 1, "got 'ÿ'"),
        (b"q" + bytes(8), 2, 1, "for column 1, got ''"),
        (b"q" + bytes(7), 1, 1, "expected 9 bytes for 1 columns of 1 rows, got 8"),
        (b"q" + bytes(9), 1, 1, "got 10"),
        (b"q" + bytes(8), 1, 2, "expected 17 bytes"),
        (b"q", 0, 0, "expected 0 bytes"),
    ],
)
def test_malformed_body_is_refused(body: bytes, fields: int, rows: int, says: str) -> None:
    with pytest.raises(ProtocolError, match=says) as refused:
        column_slices(body, fields, rows)
    assert refused.value.code == BAD_MESSAGE


@given(columns(), st.text("qdf", max_size=6), st.integers(0, 5), st.binary(max_size=2))
def test_quick_answer_agrees_with_the_thorough_one(
    table: list[array[Any]], codes: str, rows: int, tail: bytes
) -> None:
    own_codes = "".join(column.typecode for column in table)
    own_rows = len(table[0]) if table else rows
    body = encode_columns(table)
    assert holds_columns(body, own_codes.encode(), own_rows)
    for other_codes, other_rows, other_body in (
        (codes, own_rows, body),
        (own_codes, rows, body),
        (own_codes, own_rows, body + tail),
        (own_codes, own_rows, body[:-1]),
    ):
        try:
            found = column_slices(other_body, len(other_codes), other_rows)
            thorough = [column.code for column in found] == list(other_codes)
        except ProtocolError:
            thorough = False
        assert holds_columns(other_body, other_codes.encode(), other_rows) == thorough


@given(st.binary(max_size=64), st.integers(0, 8), st.integers(0, 8))
def test_random_bodies_raise_nothing_but_protocol_errors(
    body: bytes, fields: int, rows: int
) -> None:
    try:
        slices = column_slices(body, fields, rows)
    except ProtocolError:
        return
    assert len(slices) == fields
    assert all(0 < place.offset <= len(body) for place in slices)
