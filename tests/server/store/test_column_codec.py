from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vramscope_protocol.columns import UNKNOWN
from vramscope_server.store.column_codec import (
    CodecError,
    bytes_reader,
    compress,
    decode_chunk,
    decompress,
    encode_chunk,
    header_size,
    read_column,
    read_layout,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
BITS64 = st.integers(0, 2**64 - 1)
BITS32 = st.integers(0, 2**32 - 1)


@st.composite
def chunks(draw: st.DrawFn) -> tuple[list[NDArray[np.generic]], list[str]]:
    rows = draw(st.integers(0, 50))
    codes = draw(st.lists(st.sampled_from("qdf"), min_size=1, max_size=6))
    columns: list[NDArray[np.generic]] = []
    for code in codes:
        if draw(st.booleans()) and rows:
            rows_of_one_value = draw(INT64)
            columns.append(np.full(rows, rows_of_one_value, np.int64).view(np.int64))
            codes[len(columns) - 1] = "q"
        elif code == "q":
            columns.append(np.array(draw(st.lists(INT64, min_size=rows, max_size=rows)), np.int64))
        elif code == "d":
            bits = draw(st.lists(BITS64, min_size=rows, max_size=rows))
            columns.append(np.array(bits, np.uint64).view(np.float64))
        else:
            bits = draw(st.lists(BITS32, min_size=rows, max_size=rows))
            columns.append(np.array(bits, np.uint32).view(np.float32))
    return columns, codes


@given(chunks())
def test_every_bit_comes_back(chunk: tuple[list[NDArray[np.generic]], list[str]]) -> None:
    columns, codes = chunk
    blob = encode_chunk(columns, codes)
    for column, decoded in zip(columns, decode_chunk(blob), strict=True):
        assert decoded.dtype == column.dtype
        assert decoded.tobytes() == column.tobytes()  # also which NaN it was


def test_one_column_is_read_without_the_others() -> None:
    random = np.random.default_rng(1)
    columns = [random.integers(0, 2**40, 600) for _ in range(40)]
    blob = encode_chunk(columns, ["q"] * 40)
    read_bytes = 0

    def read(offset: int, size: int) -> bytes:
        nonlocal read_bytes
        read_bytes += size
        return blob[offset : offset + size]

    layout = read_layout(read)
    assert (read_column(read, layout, 17) == columns[17]).all()
    assert read_bytes < header_size(40) + len(blob) / 30


def test_unknown_values_and_steady_gauges_cost_little() -> None:
    values = np.full(600, UNKNOWN, np.int64)
    assert len(encode_chunk([values], ["q"])) == header_size(1) + 8
    values[300:] = 5
    assert len(encode_chunk([values], ["q"])) < header_size(1) + 80


def test_a_gauge_in_bytes_takes_a_fraction_of_its_raw_size() -> None:
    walk = 2**33 + 512 * np.cumsum(np.random.default_rng(2).integers(-50, 51, 600))
    assert len(encode_chunk([walk], ["q"])) < 600 * 8 / 4


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: b"XX" + blob[2:],
        lambda blob: blob[:2] + b"\x09" + blob[3:],
        lambda blob: blob[:20],
        lambda blob: blob[:-3],
        lambda blob: blob[:40] + b"\x00" * (len(blob) - 40),
        lambda blob: blob[:12] + b"z" + blob[13:],
        lambda blob: blob[:13] + b"\x07" + blob[14:],
    ],
)
def test_a_damaged_blob_is_an_error_and_nothing_else(damage: object) -> None:
    assert callable(damage)
    blob = encode_chunk([np.arange(100) ** 3, np.arange(100) ** 2], ["q", "q"])
    with pytest.raises(CodecError):
        decode_chunk(damage(blob))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(CodecError):
        encode_chunk([np.arange(3), np.arange(4)], ["q", "q"])


def test_decompress_checks_the_size() -> None:
    frame = compress(b"x" * 100)
    assert decompress(frame, 100) == b"x" * 100
    with pytest.raises(CodecError):
        decompress(frame, 101)
    with pytest.raises(CodecError):
        decompress(frame, 99)
    assert bytes_reader(b"abcdef")(2, 3) == b"cde"
