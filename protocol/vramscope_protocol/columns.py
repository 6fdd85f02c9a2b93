"""Column batches: rows of numbers as raw little-endian columns, one type byte each.

A batch of ``count`` rows over a field table is the concatenation, in the table's order, of
``type byte + count * itemsize bytes``. No numpy: the agent builds columns from ``array.array``
and the server reads them with ``numpy.frombuffer`` at the offsets given here.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError

TypeCode = Literal["q", "d", "f"]

ITEM_BYTES: Final[dict[str, int]] = {"q": 8, "d": 8, "f": 4}
"""Bytes of one value: ``q`` int64, ``d`` float64, ``f`` float32 (the codes of ``array``)."""

_CODES: Final[dict[int, TypeCode]] = {ord("q"): "q", ord("d"): "d", ord("f"): "f"}

UNKNOWN: Final = -(2**63)
"""An integer that is not known. Floats use NaN. Never 0: unknown is a value of its own."""


class ColumnSlice(NamedTuple):
    """Where one column lies inside a batch: its type and the offset of its first value."""

    code: TypeCode
    offset: int


def encode_columns(columns: Iterable[array[Any]]) -> bytes:
    """Join columns of equal length into one batch body."""
    parts: list[bytes] = []
    for column in columns:
        if sys.byteorder == "big":
            column = array(column.typecode, column)
            column.byteswap()
        parts.append(column.typecode.encode())
        parts.append(column.tobytes())
    return b"".join(parts)


def column_slices(body: bytes, field_count: int, row_count: int) -> list[ColumnSlice]:
    """Locate the columns of a batch body.

    Raises:
        ProtocolError: unknown type byte, or the body does not hold exactly the rows promised.
    """
    slices: list[ColumnSlice] = []
    offset = 0
    size = len(body)
    # This runs for every batch that a server takes: bytes are compared as integers.
    column_bytes = {code: 1 + item_bytes * row_count for code, item_bytes in ITEM_BYTES.items()}
    for position in range(field_count):
        code = _CODES.get(body[offset]) if offset < size else None
        if code is None:
            got = body[offset : offset + 1].decode("latin-1")
            raise ProtocolError(
                BAD_MESSAGE,
                f"expected a column type (q, d or f) for column {position}, got {got!r}",
            )
        slices.append(ColumnSlice(code, offset + 1))
        offset += column_bytes[code]
    if offset != size:
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected {offset} bytes for {field_count} columns of {row_count} rows, "
            f"got {len(body)}",
        )
    return slices


def holds_columns(body: bytes, codes: bytes, row_count: int) -> bool:
    """Whether a batch body holds columns of exactly these types, ``row_count`` rows each.

    The quick answer for every batch; :func:`column_slices` says what is wrong.
    """
    size = len(body)
    column_bytes = {ord(code): 1 + ITEM_BYTES[code] * row_count for code in ITEM_BYTES}
    offset = 0
    for code in codes:
        if offset >= size or body[offset] != code:
            return False
        offset += column_bytes[code]
    return offset == size


def decode_columns(body: bytes, field_count: int, row_count: int) -> list[Sequence[Any]]:
    """Copy the columns of a batch out as ``array`` objects (for tests and small readers)."""
    columns: list[Sequence[Any]] = []
    for code, offset in column_slices(body, field_count, row_count):
        column: array[Any] = array(code)
        column.frombytes(body[offset : offset + ITEM_BYTES[code] * row_count])
        if sys.byteorder == "big":
            column.byteswap()
        columns.append(column)
    return columns
