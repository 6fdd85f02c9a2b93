from __future__ import annotations

import pickle
import struct

import pytest

from vramscope_analysis.snapshot.runs.window import Window


def framed(*payloads: bytes) -> bytes:
    return b"".join(b"\x95" + struct.pack("<Q", len(payload)) + payload for payload in payloads)


def test_headers_are_left_out() -> None:
    data = framed(b"abcdef", b"ghij", b"klm")
    window = Window(data, 11, 15, 100)

    assert window.bytes == b"cdefghijklm"
    assert window.cuts == [4, 8]
    assert window.words[0] == int.from_bytes(b"cdefghij", "little")
    assert window.words[9] == int.from_bytes(b"lm", "little")
    assert window.end == len(data)


def test_places_are_found_both_ways() -> None:
    data = framed(b"abcdef", b"ghij", b"klm")
    window = Window(data, 11, 15, 100)
    for offset, byte in enumerate(window.bytes):
        position = window.file_position(offset)
        assert data[position] == byte
        assert window.offset(position) == offset
    ends = [window.frame_end(offset) for offset in (0, 3, 4, 7, 8, 10)]
    assert ends == [15, 15, 28, 28, 40, 40]


def test_a_window_ends_where_it_should() -> None:
    data = framed(b"a" * 50, b"b" * 50)
    window = Window(data, 9, 59, 60)
    assert window.bytes == b"a" * 50 + b"b" * 10
    assert window.end == 78


def test_bytes_that_are_in_no_frame() -> None:
    data = b"abc" + framed(b"def")
    # That header is no longer known to be one.
    assert Window(data, 0, 0, 100).bytes == data


@pytest.mark.parametrize("length", [4, 2**63, 2**64 - 1])
def test_a_frame_that_is_longer_than_the_file_is_none(length: int) -> None:
    data = framed(b"abc") + b"\x95" + struct.pack("<Q", length) + b"def"
    window = Window(data, 9, 12, 100)
    assert window.bytes == b"abc"
    assert window.cuts == []


def test_a_real_pickle_without_its_headers() -> None:
    plain = [{"a": at} for at in range(30_000)]
    data = pickle.dumps(plain, 4)
    end = 11 + int.from_bytes(data[3:11], "little")
    window = Window(data, 11, end, 1 << 20)
    assert len(window.cuts) >= 2
    assert pickle.loads(b"\x80\x04" + window.bytes) == plain
