"""Snapshots go behind everything else, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.transport.test_conversation import Talk, nothing
from vramscope.transport.conversation import Conversation
from vramscope.transport.limits import TransportLimits
from vramscope.transport.snapshot_lane import Shipment, SnapshotLane
from vramscope_protocol.codec import encode
from vramscope_protocol.messages import OomBegin, SnapshotAck, SnapshotBegin, Welcome


class SnapshotTalk(Talk):
    """A conversation with one snapshot that waits."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.ends: list[str] = []
        self.lane = SnapshotLane(lambda shipment, reason: self.ends.append(reason))
        self.conversation = Conversation(
            self.session,
            self.outbox,
            TransportLimits(idle_wait_s=0.0),
            next_status=lambda: None,
            on_command=self._told,
            on_welcome=lambda: None,
            on_progress=lambda: None,
            snapshots=self.lane,
        )
        path = folder / "s1"
        path.write_bytes(bytes(600_000))
        begin = SnapshotBegin("s1", 1, 600_000, 600_000, "ab" * 32)
        self.lane.add(Shipment(begin, str(path)))

    def take(self, offset: int, refused: str = "") -> Callable[[], None]:
        return lambda: self.hear(self.server.snapshot_ack(SnapshotAck("s1", offset, refused)))

    def said(self) -> list[str]:
        return [kind for kind in self.connection.kinds()[3:] if kind != "Lost"]


@pytest.fixture
def talk(tmp_path: Path) -> SnapshotTalk:
    return SnapshotTalk(tmp_path)


def test_it_comes_behind_what_is_there_already(talk: SnapshotTalk) -> None:
    talk.put(2)
    talk.hold(talk.welcome(), nothing, talk.take(0), nothing)
    assert talk.said() == ["Event", "Event", "SnapshotBegin", "SnapshotChunk"]


def test_one_piece_is_on_its_way_and_what_is_live_passes_it(talk: SnapshotTalk) -> None:
    talk.hold(
        talk.welcome(), nothing, talk.take(0), lambda: talk.put(3), nothing, talk.ack(3), nothing
    )
    assert talk.said() == ["SnapshotBegin", "SnapshotChunk", "Event", "Event", "Event"]


def test_each_answer_brings_the_next_piece(talk: SnapshotTalk) -> None:
    talk.hold(
        talk.welcome(),
        nothing,
        talk.take(0),
        talk.take(262_144),
        talk.take(524_288),
        talk.take(600_000),
    )
    chunks = [m for m in talk.connection.sent if type(m).__name__ == "SnapshotChunk"]
    assert [(chunk.offset, len(chunk.data)) for chunk in chunks] == [
        (0, 262_144),
        (262_144, 262_144),
        (524_288, 75_712),
    ]
    assert talk.ends == [""]


def test_while_the_window_is_full_no_snapshot_goes(tmp_path: Path) -> None:
    talk = SnapshotTalk(tmp_path)
    talk.conversation._limits = TransportLimits(idle_wait_s=0.0, window_bytes=100)
    talk.put(3, "x" * 200)
    talk.hold(talk.welcome(), nothing, talk.ack(1), nothing)
    assert talk.said() == ["Event", "Event"]
    assert not talk.lane.is_empty


def test_a_server_that_knows_no_snapshots_gets_none(talk: SnapshotTalk) -> None:
    talk.hold(lambda: talk.hear(encode(Welcome(1, 0, ["steps"]))), nothing)
    assert talk.said() == []
    assert talk.ends == ["this server takes no snapshots"]


def test_a_server_that_knows_no_reports_gets_snapshots_alone(talk: SnapshotTalk) -> None:
    begin = OomBegin("o1", "run", 0, 1, 3, "ab" * 32)
    talk.lane.add(Shipment(begin, "/nowhere", data=b"abc"))
    talk.hold(lambda: talk.hear(encode(Welcome(1, 0, ["snapshots"]))), nothing)
    assert talk.said() == ["SnapshotBegin"]
    assert talk.ends == ["this server takes no reports of running out of memory"]


def test_what_the_server_does_not_want_is_not_sent(talk: SnapshotTalk) -> None:
    talk.hold(talk.welcome(), nothing, talk.take(0, "no room"), nothing)
    assert talk.said() == ["SnapshotBegin"]
    assert talk.ends == ["no room"]
