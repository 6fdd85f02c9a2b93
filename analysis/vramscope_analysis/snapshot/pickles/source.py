"""From whatever holds a snapshot to its bytes, unzipped and known to be a pickle."""

from __future__ import annotations

import mmap
import os
import zlib
from typing import BinaryIO, TypeAlias

from vramscope_analysis.snapshot.errors import SnapshotError
from vramscope_analysis.snapshot.limits import Limits, over

Source: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO
Data: TypeAlias = bytes | bytearray | mmap.mmap

_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_RATIO_MATTERS_FROM_BYTES = 64 << 20

_EXPECTED = (
    "expected a memory snapshot (torch.cuda.memory._dump_snapshot, or pickle.dump of "
    "torch.cuda.memory._snapshot())"
)
_FOREIGN = [
    (b"PK\x03\x04", "a zip archive, as torch.save writes checkpoints: give the snapshot itself"),
    (b"BZh", "a bzip2 file: unpack it first"),
    (b"\xfd7zXZ", "an xz file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file: unpack it first"),
    (b"\x7fELF", "a program"),
]


def open_source(source: Source, limits: Limits) -> Data:
    """The bytes of a pickle, unzipped; a file on disk is mapped, not read.

    Raises SnapshotError for what cannot be a snapshot by its first bytes or its size, and OSError
    for a file that cannot be opened.
    """
    data = _bytes_of(source, limits.file_bytes + 1)
    if len(data) > limits.file_bytes:
        raise over(f"the file has {len(data):,} bytes", limits.file_bytes, "file_bytes")
    if data[:2] == _GZIP:
        data = _unzipped(data, limits)
    check_pickle(data)
    return data


def source_name(source: Source) -> str:
    """How messages name the source: as the caller did."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = None if isinstance(source, bytes) else getattr(source, "name", None)
    return name if isinstance(name, str) else "snapshot"


def check_pickle(data: Data) -> None:
    """Raise SnapshotError unless the bytes begin like a pickle of protocol 2 to 5."""
    if not len(data):
        raise SnapshotError(f"{_EXPECTED}, got an empty file")
    start = bytes(data[:64])
    if start[0] == 0x80:
        if len(data) < 2:
            raise SnapshotError("the file is truncated: it ends after its first byte")
        if not 2 <= start[1] <= 5:
            raise SnapshotError(
                f"expected pickle protocol 2 to 5, got {start[1]}: write it with protocol=4"
            )
        return
    raise SnapshotError(f"{_EXPECTED}, got {_guess(start)}")


def _guess(start: bytes) -> str:
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            return what
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"<":
        return "an HTML or XML page: download the file itself"
    if text[:1] in (b"{", b"[") or text[:2] == b'"s':
        return "JSON: keep the pickle that PyTorch wrote"
    if start[:1] in (b"(", b"]", b"}", b"c"):
        return "a pickle of protocol 0 or 1, or text: write it with protocol=4"
    if all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in start):
        return "text"
    return "other bytes"


def _bytes_of(source: Source, most: int) -> Data:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _file_bytes(file, most)
    return _file_bytes(source, most)


def _file_bytes(file: BinaryIO, most: int) -> Data:
    try:
        descriptor, at = file.fileno(), file.tell()
    except (OSError, AttributeError):
        return file.read(most)
    if at != 0 or os.fstat(descriptor).st_size == 0:
        return file.read(most)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return file.read(most)


def _unzipped(data: Data, limits: Limits) -> bytearray:
    out = bytearray()
    zipped = memoryview(data)
    position = 0
    try:
        while bytes(zipped[position : position + 2]) == _GZIP:
            position = _unzip_member(zipped, position, out, limits)
    except zlib.error as error:
        raise SnapshotError(f"the gzip data is damaged ({error}): copy the file again") from None
    finally:
        zipped.release()
    return out


def _unzip_member(zipped: memoryview, position: int, out: bytearray, limits: Limits) -> int:
    member = zlib.decompressobj(wbits=31)
    pending = b""
    while not member.eof:
        if not pending:
            pending = bytes(zipped[position : position + _PIECE_BYTES])
            position += len(pending)
        piece = member.decompress(pending, _PIECE_BYTES)
        if not (pending or piece or member.eof):
            raise SnapshotError("the gzip data is truncated: copy the file again")
        out += piece
        pending = member.unconsumed_tail
        _check_unzipped(len(out), len(zipped), limits)
    return position - len(member.unused_data)


def _check_unzipped(out_bytes: int, zipped_bytes: int, limits: Limits) -> None:
    if out_bytes > limits.file_bytes:
        raise over("the gzip data unpacks to too many bytes", limits.file_bytes, "file_bytes")
    if out_bytes > max(_RATIO_MATTERS_FROM_BYTES, limits.gzip_ratio * zipped_bytes):
        raise over(
            f"the gzip data of {zipped_bytes:,} bytes unpacks to more than {out_bytes:,}",
            limits.gzip_ratio,
            "gzip_ratio",
        )
