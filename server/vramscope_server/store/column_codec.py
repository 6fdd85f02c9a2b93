"""One chunk of rows as one blob in which each column can be read without the others.

Layout, little-endian::

    magic "VC" | version u8 | 0 u8 | rows u32 | columns u32
    per column: type code u8 | encoding u8 | 0 u16 | offset u32 | size u32
    segments

A segment is one zstd-1 frame of the byte-shuffled differences of its column: integers as the
difference to the row before (modulo 2**64, zigzag), floats as the xor of their bits with the row
before. Both work on bits alone, so the unknown integer and every NaN come back as they went in. A
column that holds one value is stored as that value.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from vramscope_protocol.columns import ITEM_BYTES
from vramscope_server.rows import DTYPES, ColumnGroup

Column = NDArray[Any]
ReadBytes = Callable[[int, int], bytes]
"""Reads ``size`` bytes at ``offset`` of the blob."""

VERSION: Final = 1
_MAGIC: Final = b"VC"
_HEADER: Final = struct.Struct("<2sBBII")
_ENTRY: Final = struct.Struct("<BBHII")
_CONSTANT: Final = 0
_DIFFERENCE: Final = 1


class CodecError(ValueError):
    """A blob that this version did not write, or that is damaged."""


class _Zstd(threading.local):
    """Contexts per thread: zstandard's are not safe to share, and costly to make for each call."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=1, write_content_size=False)
        self.fast_compressor = zstandard.ZstdCompressor(level=-1, write_content_size=False)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


def compress(data: bytes | memoryview) -> bytes:
    """One zstd-1 frame without its size, which the caller knows."""
    return _zstd.compressor.compress(data)


def compress_fast(data: bytes) -> bytes:
    """Like :func:`compress` for what lives a minute: as small on raw rows, a third faster."""
    return _zstd.fast_compressor.compress(data)


def decompress(data: bytes, size: int) -> bytes:
    """The ``size`` bytes of one frame.

    Raises:
        CodecError: damaged, or of another size.
    """
    if size == 0:
        return b""
    try:
        plain = _zstd.decompressor.decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise CodecError(f"expected a zstd frame of {size} bytes: {error}") from None
    if len(plain) != size:
        raise CodecError(f"expected a zstd frame of {size} bytes, got {len(plain)}")
    return plain


def header_size(columns: int) -> int:
    """Bytes before the first segment."""
    return _HEADER.size + columns * _ENTRY.size


def group_columns(columns: Sequence[Column], codes: Sequence[str]) -> list[ColumnGroup]:
    """Columns of equal length in groups of one type.

    Raises:
        CodecError: columns of different lengths.
    """
    if len({len(column) for column in columns}) > 1:
        raise CodecError("expected columns of equal length")
    groups: list[ColumnGroup] = []
    for code in dict.fromkeys(codes):
        positions = [position for position, other in enumerate(codes) if other == code]
        values = np.stack([columns[position] for position in positions])
        groups.append(ColumnGroup(code, positions, values))
    return groups


def encode_chunk(columns: Sequence[Column], codes: Sequence[str]) -> bytes:
    """Columns of equal length, with their type codes, as one blob.

    Raises:
        CodecError: columns of different lengths.
    """
    return encode_groups(group_columns(columns, codes))


def encode_groups(groups: Sequence[ColumnGroup]) -> bytes:
    """Groups that together hold every column of a field table, as one blob."""
    rows = groups[0].values.shape[1] if groups else 0
    columns = sum(len(group.positions) for group in groups)
    codes = [""] * columns
    segments = [(_CONSTANT, b"")] * columns
    for group in groups:
        encoded = _encode_group(group)
        for position, pair in zip(group.positions, encoded, strict=True):
            codes[position] = group.code
            segments[position] = pair
    parts = [_HEADER.pack(_MAGIC, VERSION, 0, rows, columns)]
    offset = header_size(columns)
    for code, (encoding, segment) in zip(codes, segments, strict=True):
        parts.append(_ENTRY.pack(ord(code), encoding, 0, offset, len(segment)))
        offset += len(segment)
    parts.extend(segment for _, segment in segments)
    return b"".join(parts)


def _encode_group(group: ColumnGroup) -> list[tuple[int, bytes]]:
    size = ITEM_BYTES[group.code]
    unsigned = np.dtype(f"<u{size}")
    bits = np.ascontiguousarray(group.values, dtype=DTYPES[group.code]).view(unsigned)
    differences = bits.copy()
    changing: NDArray[np.bool_]
    if group.code == "q":
        np.subtract(bits[:, 1:], bits[:, :-1], out=differences[:, 1:])
        changing = np.logical_or.reduce(differences[:, 1:] != 0, axis=1)
        # Zigzag: a gauge that falls by a little must not differ from 0 in all eight bytes.
        signs = (differences.view(np.int64) >> np.int64(63)).view(unsigned)
        np.left_shift(differences, np.uint64(1), out=differences)
        np.bitwise_xor(differences, signs, out=differences)
    else:
        np.bitwise_xor(bits[:, 1:], bits[:, :-1], out=differences[:, 1:])
        changing = np.logical_or.reduce(differences[:, 1:] != 0, axis=1)
    rows = bits.shape[1]
    planes = differences.view(np.uint8).reshape(len(bits), rows, size).transpose(0, 2, 1)
    shuffled = np.ascontiguousarray(planes)
    return [
        (_DIFFERENCE, compress(shuffled[at].data))
        if changes
        else (_CONSTANT, bits[at, :1].tobytes())
        for at, changes in enumerate(changing)
    ]


class Segment(NamedTuple):
    """Where one column lies in a blob."""

    code: str
    encoding: int
    offset: int
    size: int


class ChunkLayout(NamedTuple):
    """Rows of a blob, and where its columns lie."""

    rows: int
    segments: list[Segment]


def read_layout(read: ReadBytes) -> ChunkLayout:
    """Read header and offset table.

    Raises:
        CodecError: not a chunk of this version.
    """
    head = read(0, _HEADER.size)
    if len(head) != _HEADER.size:
        raise CodecError(f"expected a chunk header of {_HEADER.size} bytes, got {len(head)}")
    magic, version, _, rows, columns = _HEADER.unpack(head)
    if magic != _MAGIC or version != VERSION:
        raise CodecError(f"expected a chunk of version {VERSION}, got {magic!r} {version}")
    table = read(_HEADER.size, columns * _ENTRY.size)
    if len(table) != columns * _ENTRY.size:
        raise CodecError(f"expected an offset table of {columns} columns, got {len(table)} bytes")
    segments = [
        Segment(chr(code), encoding, offset, size)
        for code, encoding, _, offset, size in _ENTRY.iter_unpack(table)
    ]
    return ChunkLayout(rows, segments)


def read_column(read: ReadBytes, layout: ChunkLayout, index: int) -> Column:
    """Read and decode one column.

    Raises:
        CodecError: damaged segment.
    """
    segment = layout.segments[index]
    dtype = DTYPES.get(segment.code)
    if dtype is None:
        raise CodecError(f"expected a column type (q, d or f), got {segment.code!r}")
    if layout.rows == 0:
        return np.empty(0, dtype)
    data = read(segment.offset, segment.size)
    if len(data) != segment.size:
        raise CodecError(f"expected a segment of {segment.size} bytes, got {len(data)}")
    if segment.encoding == _CONSTANT:
        if len(data) != dtype.itemsize:
            raise CodecError(f"expected one value of {dtype.itemsize} bytes, got {len(data)}")
        return np.repeat(np.frombuffer(data, dtype), layout.rows)
    if segment.encoding != _DIFFERENCE:
        raise CodecError(f"expected encoding {_CONSTANT} or {_DIFFERENCE}, got {segment.encoding}")
    shuffled = decompress(data, layout.rows * dtype.itemsize)
    planes = np.frombuffer(shuffled, np.uint8).reshape(dtype.itemsize, layout.rows)
    bits = np.array(planes.T, order="C").view(f"<u{dtype.itemsize}").reshape(-1)
    if segment.code == "q":
        signs = (np.uint64(0) - (bits & np.uint64(1))).astype(np.uint64)
        np.right_shift(bits, np.uint64(1), out=bits)
        np.bitwise_xor(bits, signs, out=bits)
        return np.cumsum(bits, dtype=np.uint64).view(dtype)
    return np.bitwise_xor.accumulate(bits).view(dtype)


def bytes_reader(blob: bytes) -> ReadBytes:
    """Read from a blob that is in memory as a whole."""

    def read(offset: int, size: int) -> bytes:
        return blob[offset : offset + size]

    return read


def decode_chunk(blob: bytes) -> list[Column]:
    """Decode every column of a blob.

    Raises:
        CodecError: not a chunk, or damaged.
    """
    read = bytes_reader(blob)
    layout = read_layout(read)
    return [read_column(read, layout, index) for index in range(len(layout.segments))]
