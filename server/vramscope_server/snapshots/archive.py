"""Gzipped pickles: checked, made and unpacked piece by piece, never held whole."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import BinaryIO, Final

PART_BYTES: Final = 256 << 10

_GZIP: Final = 31  # zlib's number for the gzip format with the largest window
_MAGIC: Final = b"\x1f\x8b"


class ArchiveError(Exception):
    """The bytes are not what they were said to be; the message is one line for a person."""


@dataclass(frozen=True)
class Unpacked:
    """What a gzipped pickle unpacks to."""

    raw_bytes: int
    sha256: str


def is_gzip(start: bytes) -> bool:
    """Whether a file that begins so is gzipped."""
    return start.startswith(_MAGIC)


def unpack(parts: Iterable[bytes], max_bytes: int) -> Generator[bytes]:
    """The pickle, in pieces.

    Raises:
        ArchiveError: damaged, cut off, with something behind it, or larger than ``max_bytes``.
    """
    archive = zlib.decompressobj(_GZIP)
    given_bytes = 0
    for part in parts:
        pending = part
        while pending:
            if archive.eof:
                raise ArchiveError("expected one gzip member, got something behind it")
            try:
                piece = archive.decompress(pending, PART_BYTES)
            except zlib.error as error:
                raise ArchiveError(f"the gzip data is damaged ({error})") from None
            pending = archive.unconsumed_tail or archive.unused_data
            given_bytes += len(piece)
            if given_bytes > max_bytes:
                raise ArchiveError(f"it unpacks to more than {max_bytes} bytes")
            if piece:
                yield piece
    # What was held back because it did not fit into the last piece.
    while not archive.eof:
        piece = archive.decompress(b"", PART_BYTES)
        if not piece:
            raise ArchiveError("the gzip data is cut off")
        given_bytes += len(piece)
        if given_bytes > max_bytes:
            raise ArchiveError(f"it unpacks to more than {max_bytes} bytes")
        yield piece


def check(parts: Iterable[bytes], max_bytes: int) -> Unpacked:
    """What the parts unpack to.

    Raises:
        ArchiveError: see :func:`unpack`.
    """
    digest = hashlib.sha256()
    raw_bytes = 0
    for piece in unpack(parts, max_bytes):
        digest.update(piece)
        raw_bytes += len(piece)
    return Unpacked(raw_bytes, digest.hexdigest())


def pack(source: BinaryIO, target: BinaryIO) -> None:
    """Gzip a file into another one."""
    archive = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    while data := source.read(PART_BYTES):
        target.write(archive.compress(data))
    target.write(archive.flush())


def pieces(source: BinaryIO) -> Generator[bytes]:
    """A file in pieces, from where it stands."""
    while data := source.read(PART_BYTES):
        yield data
