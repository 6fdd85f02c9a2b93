"""Gzipped pickles are checked and unpacked piece by piece, and bombs do not go off."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import zlib

import pytest

from vramscope_server.snapshots import archive
from vramscope_server.snapshots.archive import ArchiveError


def split(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


RAW = random.Random(1).randbytes(700_000) + bytes(2_000_000)
PACKED = gzip.compress(RAW)


@pytest.mark.parametrize("size", [7919, 262_144, len(PACKED)])
def test_it_unpacks_whatever_the_pieces(size: int) -> None:
    unpacked = list(archive.unpack(split(PACKED, size), len(RAW)))
    assert b"".join(unpacked) == RAW
    assert max(map(len, unpacked)) <= archive.PART_BYTES


def test_it_is_checked_without_being_held() -> None:
    found = archive.check(split(PACKED, 5000), len(RAW))
    assert (found.raw_bytes, found.sha256) == (len(RAW), hashlib.sha256(RAW).hexdigest())


def test_a_bomb_stops_at_what_was_announced() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(200)) + bomb.flush()
    given: list[int] = []
    with pytest.raises(ArchiveError, match="unpacks to more than 1000000 bytes"):
        given.extend(map(len, archive.unpack([data], 1_000_000)))
    assert sum(given) <= 1_000_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PACKED[:-4], "cut off"),
        (PACKED[:1000], "cut off"),
        (b"", "cut off"),
        (b"not gzip at all", "damaged"),
        (PACKED[:-4] + b"abcd", "damaged"),
        (PACKED + b"more", "something behind it"),
    ],
)
def test_what_is_not_one_whole_archive_is_said(data: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        list(archive.unpack(split(data, 10_000), 10 * len(RAW)))


def test_packing_and_unpacking_are_each_others_reverse() -> None:
    target = io.BytesIO()
    archive.pack(io.BytesIO(RAW), target)
    target.seek(0)
    assert b"".join(archive.unpack(archive.pieces(target), len(RAW))) == RAW
    assert archive.is_gzip(target.getvalue()[:2])
    assert not archive.is_gzip(b"\x80\x04")
