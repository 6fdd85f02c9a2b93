from __future__ import annotations

import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.pickles.cursor import Cursor


def test_bytes_come_in_order() -> None:
    cursor = Cursor(b"\x01\x02\x03\x04abc")
    assert cursor.take_byte() == 1
    assert cursor.take_length(3) == 0x040302
    assert cursor.take(3) == b"abc"
    assert cursor.take(0) == b""
    assert cursor.position == cursor.size == 7


def test_more_than_there_is_is_refused() -> None:
    cursor = Cursor(b"abc")
    with pytest.raises(SnapshotError, match="truncated: it ends at byte 3"):
        cursor.take(4)
    assert cursor.position == 0
    with pytest.raises(IndexError):
        Cursor(b"").take_byte()


def test_damage_is_said_with_its_place() -> None:
    cursor = Cursor(bytes(2000))
    cursor.take(1500)
    assert str(cursor.damaged("it is odd")) == "byte 1,500: it is odd: the pickle is damaged"
