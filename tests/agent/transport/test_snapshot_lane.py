"""One piece at a time, from where the server says, and every loss is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vramscope.transport.snapshot_lane import MAX_REPORTS, Shipment, SnapshotLane
from vramscope_protocol.codec import MAX_SNAPSHOT_CHUNK_BYTES
from vramscope_protocol.messages import (
    Message,
    OomBegin,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
)

MAX_BYTES = 1 << 20


class Lane:
    """A lane, its owner, and what became of each shipment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ends: list[tuple[str, str]] = []
        self.wakes = 0
        self.lane = SnapshotLane(
            lambda shipment, reason: self.ends.append((shipment.begin.id, reason))
        )
        self.owner = object()
        self.lane.claim(self.owner, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def add(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        begin = SnapshotBegin(name, 1, len(data), len(data), "ab" * 32)
        self.lane.add(Shipment(begin, str(path)))
        return path

    def next(self, max_bytes: int = MAX_BYTES) -> Message | None:
        return self.lane.next_message(self.owner, max_bytes)

    def ack(self, name: str, offset: int = 0, refused: str = "") -> None:
        self.lane.acked(self.owner, SnapshotAck(name, offset, refused))

    def chunk(self, max_bytes: int = MAX_BYTES) -> SnapshotChunk:
        message = self.next(max_bytes)
        assert isinstance(message, SnapshotChunk)
        return message


@pytest.fixture
def lane(tmp_path: Path) -> Lane:
    return Lane(tmp_path)


def test_a_snapshot_goes_piece_by_piece(lane: Lane) -> None:
    data = bytes(range(256)) * 3000
    path = lane.add("a", data)
    assert lane.wakes == 1
    begin = lane.next()
    assert isinstance(begin, SnapshotBegin)
    assert lane.next() is None
    got = b""
    lane.ack("a")
    while not lane.lane.is_empty:
        chunk = lane.chunk()
        assert chunk.offset == len(got)
        assert len(chunk.data) <= MAX_SNAPSHOT_CHUNK_BYTES
        assert lane.next() is None, "the next one waits for the answer"
        got += chunk.data
        lane.ack("a", len(got))
    assert got == data
    assert lane.ends == [("a", "")]
    assert not path.exists()
    assert lane.lane.wait_until_empty(0)


def test_it_goes_on_from_where_the_server_is(lane: Lane) -> None:
    lane.add("a", b"0123456789")
    lane.next()
    lane.ack("a", 4)
    assert lane.chunk().data == b"456789"
    # The connection breaks before the answer; on the next one it is begun again.
    lane.owner = object()
    lane.lane.claim(lane.owner, lane._wake)
    assert isinstance(lane.next(), SnapshotBegin)
    lane.ack("a", 4)
    assert lane.chunk().offset == 4


def test_only_the_latest_conversation_sends(lane: Lane) -> None:
    lane.add("a", b"x")
    old, lane.owner = lane.owner, object()
    lane.lane.claim(lane.owner, lane._wake)
    assert lane.lane.next_message(old, MAX_BYTES) is None
    assert isinstance(lane.next(), SnapshotBegin)
    lane.lane.acked(old, SnapshotAck("a", 1))
    assert lane.ends == []


def test_what_the_server_refuses_is_lost_and_told(lane: Lane) -> None:
    path = lane.add("a", b"x")
    lane.add("b", b"y")
    lane.next()
    lane.ack("a", refused="no room")
    assert lane.ends == [("a", "no room")]
    assert not path.exists()
    begin = lane.next()
    assert isinstance(begin, SnapshotBegin)
    assert begin.id == "b"


def test_an_answer_about_something_else_changes_nothing(lane: Lane) -> None:
    lane.add("a", b"x")
    lane.ack("a", 1)
    lane.next()
    lane.ack("b", 1)
    assert lane.next() is None
    assert lane.ends == []


def test_pieces_fit_into_what_the_server_takes(lane: Lane) -> None:
    lane.add("a", bytes(5000))
    lane.next()
    lane.ack("a")
    assert len(lane.chunk(2048).data) == 1024


def test_a_server_that_takes_next_to_nothing_gets_no_snapshot(lane: Lane) -> None:
    lane.add("a", bytes(5000))
    lane.next()
    lane.ack("a")
    assert lane.next(1100) is None
    assert lane.ends == [("a", "the server does not take it in")]


def test_a_server_that_always_wants_it_from_the_start_does_not_get_it_for_ever(lane: Lane) -> None:
    lane.add("a", bytes(1000))
    lane.next()
    lane.ack("a")
    for _ in range(1000):
        if lane.next() is None:
            break
        lane.ack("a", 0)
    assert lane.ends == [("a", "the server does not take it in")]


@pytest.mark.parametrize("harm", ["gone", "short"])
def test_a_file_that_cannot_be_read_is_told(lane: Lane, harm: str) -> None:
    path = lane.add("a", bytes(100))
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(b"")
    lane.next()
    lane.ack("a")
    assert lane.next() is None
    assert lane.ends[0][1].startswith("its file ")


def test_giving_up_loses_all_that_waits(lane: Lane) -> None:
    paths = [lane.add(name, b"x") for name in "abc"]
    assert not lane.lane.wait_until_empty(0)
    lane.lane.refuse_all("the process ended")
    assert lane.ends == [(name, "the process ended") for name in "abc"]
    assert not any(path.exists() for path in paths)
    assert lane.lane.wait_until_empty(0)


def test_before_anybody_sends_it_just_waits(tmp_path: Path) -> None:
    ends: list[Any] = []
    lane = SnapshotLane(lambda shipment, reason: ends.append(reason))
    path = tmp_path / "a"
    path.write_bytes(b"x")
    lane.add(Shipment(SnapshotBegin("a", 1, 1, 1, "ab" * 32), str(path)))
    assert not lane.is_empty
    assert lane.next_message(object(), MAX_BYTES) is None


def report(name: str, **fields: Any) -> Shipment:
    begin = OomBegin(name, "run", 0, 1, 3, "ab" * 32)
    return Shipment(begin, "/nowhere", **fields)


def test_reports_go_before_snapshots_but_not_into_the_middle_of_one(lane: Lane) -> None:
    lane.add("s1", b"abc")
    lane.add("s2", b"abc")
    assert isinstance(lane.next(), SnapshotBegin)
    for name in ("o1", "o2"):
        lane.lane.add(report(name, data=b"abc"))
    lane.ack("s1", 3)
    begun = []
    for name in ("o1", "o2", "s2"):
        message = lane.next()
        assert isinstance(message, (OomBegin, SnapshotBegin))
        begun.append(message.id)
        lane.ack(name, 3)
    assert begun == ["o1", "o2", "s2"]
    assert lane.ends == [(name, "") for name in ("s1", "o1", "o2", "s2")]


def test_what_could_not_be_written_is_sent_from_memory(lane: Lane) -> None:
    lane.lane.add(report("o1", data=b"abc"))
    assert isinstance(lane.next(), OomBegin)
    lane.ack("o1", 1)
    assert lane.chunk().data == b"bc"


def test_a_file_is_left_to_whoever_wants_to_be_told(lane: Lane) -> None:
    path = lane.folder / "o1.json"
    path.write_bytes(b"abc")
    told: list[str] = []
    for reason in ("no room", ""):
        begin = OomBegin("o1", "run", 0, 1, 3, "ab" * 32)
        lane.lane.add(Shipment(begin, str(path), over=told.append))
        lane.next()
        lane.ack("o1", 0 if reason else 3, reason)
    assert told == ["no room", ""]
    assert path.exists()


def test_reports_alone_can_be_refused(lane: Lane) -> None:
    lane.add("s1", b"abc")
    lane.lane.add(report("o1", data=b"abc"))
    lane.lane.refuse_reports("unknown there")
    assert lane.ends == [("o1", "unknown there")]
    message = lane.next()
    assert isinstance(message, SnapshotBegin)


def test_while_nobody_takes_them_reports_do_not_pile_up(lane: Lane) -> None:
    lane.add("s1", b"abc")
    assert isinstance(lane.next(), SnapshotBegin)
    for number in range(MAX_REPORTS + 2):
        lane.lane.add(report(f"o{number}", data=b"abc"))
    assert lane.ends == [("o0", "too many wait"), ("o1", "too many wait")]
    lane.ack("s1", 3)
    message = lane.next()
    assert isinstance(message, OomBegin)
    assert message.id == "o2"
