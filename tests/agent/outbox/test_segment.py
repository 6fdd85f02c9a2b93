from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.file_limit import largest_file
from vramscope.outbox.entry import NO_TABLE, OTHER, SAMPLES, STEPS, Entry
from vramscope.outbox.losses import Losses
from vramscope.outbox.segment import Segment, SegmentError
from vramscope_protocol.messages import Lost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "1.segment"


@pytest.fixture
def segment(path: Path) -> Iterator[Segment]:
    segment = Segment(str(path))
    yield segment
    segment.close()


def entry(seq: int, kind: int = SAMPLES, rows: int = 1, size: int = 1000) -> Entry:
    return Entry(seq, kind, rows, 5, bytes([seq % 256]) * size)


def unread(segment: Segment) -> Lost:
    losses = Losses()
    segment.count_unread(losses, "why")
    return losses.message()


def test_records_come_back_as_they_were_in_order(segment: Segment) -> None:
    entries = [
        entry(1),
        Entry(1 << 40, OTHER, 1, NO_TABLE, b""),
        entry(3, STEPS, 8192, 300_000),
    ]
    for given in entries:
        segment.append(given)
    assert [segment.take() for _ in entries] == entries
    assert segment.is_read


def test_reading_may_follow_close_behind_writing(segment: Segment) -> None:
    for seq in range(1, 20):
        segment.append(entry(seq))
        assert not segment.is_read
        assert segment.take().seq == seq
        assert segment.is_read


def test_its_size_is_that_of_the_file(segment: Segment, path: Path) -> None:
    assert segment.is_read
    assert segment.size_bytes == 0
    for seq in (1, 2):
        segment.append(entry(seq))
        assert segment.size_bytes == path.stat().st_size


def test_the_file_is_private_and_no_file_or_link_of_others_is_written_to(
    segment: Segment, path: Path, tmp_path: Path
) -> None:
    segment.append(entry(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    precious = tmp_path / "precious"
    precious.write_text("theirs")
    (tmp_path / "planted").symlink_to(precious)
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    for planted in ("precious", "planted", "dangling"):
        other = Segment(str(tmp_path / planted))
        with pytest.raises(OSError, match=r"exists|symbolic"):
            other.append(entry(1))
        assert other.is_read
    assert precious.read_text() == "theirs"
    assert not (tmp_path / "new").exists()


def test_a_write_that_fails_halfway_leaves_what_was_there_and_can_be_repeated(
    segment: Segment, path: Path
) -> None:
    segment.append(entry(1))
    before = segment.size_bytes
    with largest_file(before + 100), pytest.raises(OSError, match="too large"):
        segment.append(entry(2, size=5000))
    assert path.stat().st_size == before + 100  # torn: only a part of the record is there
    assert segment.size_bytes == before
    segment.append(entry(2, size=10))  # shorter than what was torn
    segment.append(entry(3))
    assert [segment.take().seq for _ in range(3)] == [1, 2, 3]
    assert segment.is_read


@pytest.mark.parametrize("at", [0, 4, 8, 16, 20, 24, 25, -1])
def test_a_flipped_byte_anywhere_is_found(segment: Segment, path: Path, at: int) -> None:
    segment.append(entry(1, size=50))
    body = bytearray(path.read_bytes())
    body[at] ^= 0x10
    path.write_bytes(body)
    with pytest.raises(SegmentError, match=str(path)):
        segment.take()
    assert not segment.is_read


def test_a_length_that_is_damaged_asks_for_no_memory(segment: Segment, path: Path) -> None:
    segment.append(entry(1))
    path.write_bytes(b"\xff\xff\xff\x7f" + path.read_bytes()[4:])
    with pytest.raises(SegmentError, match="damaged"):
        segment.take()


@pytest.mark.parametrize("left_bytes", [0, 10, 500])
def test_a_file_that_was_cut_is_read_no_further(
    segment: Segment, path: Path, left_bytes: int
) -> None:
    segment.append(entry(1))
    first_bytes = segment.size_bytes
    segment.append(entry(2))
    os.truncate(path, first_bytes + left_bytes)
    assert segment.take().seq == 1
    with pytest.raises(SegmentError):
        segment.take()


def test_a_file_that_is_gone_or_replaced_by_a_link_is_not_read(
    segment: Segment, path: Path, tmp_path: Path
) -> None:
    segment.append(entry(1))
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(SegmentError, match="No such file"):
        segment.take()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SegmentError):
        segment.take()


def test_what_was_not_taken_is_counted_by_kind(segment: Segment) -> None:
    segment.append(entry(1, SAMPLES, 10))
    segment.append(entry(2, STEPS, 7))
    segment.append(entry(3, OTHER))
    segment.append(entry(4, SAMPLES, 30))
    segment.take()
    expected = Lost({"why": 30}, {"why": 7}, {"why": 1}, 4)
    assert unread(segment) == expected
    for _ in range(3):
        segment.take()
    assert unread(segment) == Lost()


def test_a_record_that_cannot_be_read_is_counted_as_lost(segment: Segment, path: Path) -> None:
    segment.append(entry(1, SAMPLES, 10))
    path.write_bytes(bytes(segment.size_bytes))
    with pytest.raises(SegmentError):
        segment.take()
    assert unread(segment) == Lost({"why": 10}, last_dropped_seq=1)


def test_closing_lets_go_of_the_file_and_leaves_what_is_written(
    segment: Segment, path: Path
) -> None:
    open_before = set(os.listdir("/proc/self/fd"))
    segment.append(entry(1))
    segment.append(entry(2))
    assert segment.take().seq == 1
    segment.close()
    segment.close()
    assert set(os.listdir("/proc/self/fd")) <= open_before
    assert path.stat().st_size == segment.size_bytes
    assert segment.take().seq == 2
