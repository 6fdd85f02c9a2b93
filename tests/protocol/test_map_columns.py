"""Packed columns of a map frame: exact round trips, and every wrong length refused."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.map_columns import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    SEGMENT_BYTES,
    SEGMENT_COLUMNS,
    pack_columns,
    unpack_columns,
)

RANGES = {
    "q": st.integers(-(2**63), 2**63 - 1),
    "i": st.integers(-(2**31), 2**31 - 1),
    "B": st.integers(0, 255),
}


@given(st.data(), st.integers(0, 5))
def test_round_trip_is_exact(data: st.DataObject, count: int) -> None:
    values = {
        name: data.draw(st.lists(RANGES[code], min_size=count, max_size=count))
        for name, code in BLOCK_COLUMNS.items()
    }
    packed = pack_columns(BLOCK_COLUMNS, values)
    assert len(packed) == count * BLOCK_BYTES
    found = unpack_columns(BLOCK_COLUMNS, packed, count)
    assert {name: list(column) for name, column in found.items()} == values


def test_layout_is_one_little_endian_column_after_another() -> None:
    values = {name: [1, 2] for name in SEGMENT_COLUMNS}
    packed = pack_columns(SEGMENT_COLUMNS, values)
    int64s = (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    assert packed == int64s * 6 + b"\1\2" + b"\1\0\0\0\2\0\0\0"
    assert len(packed) == 2 * SEGMENT_BYTES


def test_big_endian_machines_send_and_read_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {name: [1, 2] for name in SEGMENT_COLUMNS}
    little = pack_columns(SEGMENT_COLUMNS, values)
    monkeypatch.setattr(sys, "byteorder", "big")
    # On this machine an array that was told to swap is the swapped one.
    swapped = pack_columns(SEGMENT_COLUMNS, values)
    assert swapped != little
    found = unpack_columns(SEGMENT_COLUMNS, swapped, 2)
    assert {name: list(column) for name, column in found.items()} == values


@pytest.mark.parametrize("extra", [-1, 1])
def test_other_lengths_are_refused(extra: int) -> None:
    with pytest.raises(ProtocolError, match="expected 84 bytes for 2 rows of a map") as error:
        unpack_columns(BLOCK_COLUMNS, bytes(2 * BLOCK_BYTES + extra), 2)
    assert error.value.code == BAD_MESSAGE
