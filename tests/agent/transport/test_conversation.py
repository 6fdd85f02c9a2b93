"""Both sides of a conversation on one thread: what the server does, it does between two turns."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from vramscope.notices import Notices
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.transport.conversation import Conversation, MapFeed
from vramscope.transport.limits import TransportLimits
from vramscope_protocol.codec import decode_agent_message, encode
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import (
    AgentStatus,
    Batch,
    Command,
    Decision,
    Event,
    Field,
    FieldTable,
    Goodbye,
    MapFrame,
    MapWanted,
    RankInfo,
    Register,
    RunInfo,
    Welcome,
)
from vramscope_protocol.session import AgentSession, ServerSession


class FakeConnection:
    """Keeps what was sent, as far as a server would understand it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.is_closed = False
        self.error: BaseException | None = None

    def send(self, frame: bytes) -> None:
        self.sent.append(decode_agent_message(frame, 1 << 24))

    def check_cost(self) -> None:
        pass

    def kinds(self) -> list[str]:
        return [type(message).__name__ for message in self.sent]

    def seqs(self) -> list[int]:
        return [message.seq for message in self.sent if hasattr(message, "seq")]


class Talk:
    """A conversation with all its parts."""

    def __init__(self, map_feed: MapFeed | None = None, **limits: Any) -> None:
        self.outbox = Outbox(1 << 20, None, Losses(), Notices())
        self.connection = FakeConnection()
        self.server = ServerSession()
        self.statuses: list[AgentStatus] = []
        self.commands: list[Command | Decision] = []
        self.greetings: list[Welcome] = []
        self.welcomes = 0
        self.progress = 0
        register = Register("stream-1", RunInfo("run", "run"), RankInfo(0, "host", 1))
        self.session = AgentSession("token", register)
        self.conversation = Conversation(
            self.session,
            self.outbox,
            TransportLimits(**{"idle_wait_s": 0.0, **limits}),
            next_status=lambda: self.statuses.pop(0) if self.statuses else None,
            on_command=self._told,
            on_welcome=self._welcomed,
            on_progress=self._progressed,
            map_feed=map_feed,
        )

    def _told(self, message: Command | Decision | Welcome) -> None:
        if isinstance(message, Welcome):
            self.greetings.append(message)
        else:
            self.commands.append(message)

    def _welcomed(self) -> None:
        self.welcomes += 1

    def _progressed(self) -> None:
        self.progress += 1

    def hear(self, frame: bytes) -> None:
        """A frame of the server arrives."""
        message = self.session.receive(frame)
        assert message is not None
        self.conversation.take(message)

    def welcome(self, last_seq: int = 0) -> Callable[[], None]:
        return lambda: self.hear(self.server.welcome(last_seq))

    def ack(self, seq: int) -> Callable[[], None]:
        return lambda: self.hear(self.server.ack(seq))

    def put(self, count: int = 1, text: str = "") -> None:
        for _ in range(count):
            self.outbox.put(Event(0, 1, "mark", None, text))

    def hold(self, *between_turns: Callable[[], object]) -> None:
        """Talk; before each turn the next of these happens, and behind the last it is over."""
        coming = list(between_turns)

        def is_over() -> bool:
            if not coming:
                return True
            coming.pop(0)()
            return False

        self.conversation.hold(self.connection, is_over)  # type: ignore[arg-type]  # has its parts


def nothing() -> None:
    """A turn in which the server does nothing."""


def test_before_the_welcome_only_the_opening_is_said() -> None:
    talk = Talk()
    talk.put()
    talk.hold(talk.outbox.wakeup.set, talk.outbox.wakeup.set)
    assert talk.connection.kinds() == ["Hello", "Auth", "Register"]
    assert talk.welcomes == 0


def test_behind_the_welcome_everything_goes_out_in_order() -> None:
    talk = Talk()
    talk.put(3)
    talk.hold(talk.welcome(), nothing, lambda: talk.put(2), nothing)
    assert talk.connection.seqs() == [1, 2, 3, 4, 5]
    assert talk.welcomes == 1


def test_who_runs_commands_knows_of_the_welcome_before_the_first_of_them() -> None:
    talk = Talk()
    talk.server = ServerSession(reachable=True)
    known: list[int] = []
    talk.hold(talk.welcome(), lambda: known.append(len(talk.greetings)))
    assert known == [1]
    assert [each.reachable for each in talk.greetings] == [True]


def test_what_the_server_has_is_not_sent_again() -> None:
    talk = Talk()
    talk.put(5)
    for _ in range(3):
        talk.outbox.next_unsent()
    talk.outbox.rewind()  # three were sent on a connection that is gone
    talk.hold(talk.welcome(2), nothing)
    assert talk.connection.seqs() == [3, 4, 5]


def test_an_acknowledgement_is_progress_and_empties_the_outbox() -> None:
    talk = Talk()
    talk.put(3)
    talk.hold(talk.welcome(), nothing, talk.ack(2), talk.ack(3))
    assert talk.outbox.is_empty
    assert talk.progress == 3  # the welcome says how far the server is, too


@pytest.mark.parametrize("frame", [ServerSession().ack(7), ServerSession().welcome(7)])
def test_the_receipt_of_what_was_never_sent_breaks_the_protocol(frame: bytes) -> None:
    talk = Talk()
    talk.put(3)
    opening = [] if b"welcome" in frame else [talk.welcome(), nothing]
    with pytest.raises(ProtocolError, match="expected the number of a message that was sent"):
        talk.hold(*opening, lambda: talk.hear(frame))
    assert talk.welcomes == (1 if opening else 0)


def test_no_more_is_on_its_way_than_the_window() -> None:
    talk = Talk(window_bytes=3000)
    talk.put(10, "x" * 1000)
    talk.hold(talk.welcome(), nothing, nothing)
    assert talk.connection.seqs() == [1, 2, 3]
    assert talk.outbox.unacked_bytes < 3000 + 1500


def test_an_acknowledgement_opens_a_full_window_at_once() -> None:
    talk = Talk(window_bytes=3000, idle_wait_s=3.0)
    talk.put(10, "x" * 1000)
    wake = talk.outbox.wakeup.set
    started_s = time.monotonic()
    talk.hold(talk.welcome(), wake, talk.ack(3), talk.ack(6), wake)
    assert time.monotonic() - started_s < 2
    assert talk.connection.seqs() == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_field_table_goes_out_once_before_its_first_batch() -> None:
    talk = Talk()
    talk.outbox.declare(FieldTable(1, [Field("time_ns", "q"), Field("step", "q")]))
    talk.outbox.declare(FieldTable(2, [Field("time_ns", "q"), Field("step", "q")]))

    def batch(table: int) -> Batch:
        return Batch(0, "sample", table, 0, 1, encode_columns([array("q", [1])] * 2))

    for table in (1, 1, 2, 1):
        talk.outbox.put(batch(table))
    talk.hold(talk.welcome(), nothing)
    sent = [
        (type(message).__name__, message.table)
        for message in talk.connection.sent
        if isinstance(message, (Batch, FieldTable))
    ]
    assert sent == [
        ("FieldTable", 1),
        ("Batch", 1),
        ("Batch", 1),
        ("FieldTable", 2),
        ("Batch", 2),
        ("Batch", 1),
    ]


def test_losses_come_before_a_goodbye_and_again_only_when_they_grew() -> None:
    talk = Talk()
    talk.outbox.count_lost("row_buffer_full", samples=2)
    talk.put()
    talk.outbox.put(Goodbye(0, 1, "exit"))
    talk.hold(
        talk.welcome(),
        nothing,
        nothing,
        lambda: talk.outbox.count_lost("row_buffer_full", samples=1),
        nothing,
    )
    assert talk.connection.kinds()[3:] == ["Lost", "Event", "Goodbye", "Lost"]
    assert [m.samples for m in talk.connection.sent if type(m).__name__ == "Lost"] == [
        {"row_buffer_full": 2},
        {"row_buffer_full": 3},
    ]


def test_a_status_that_is_due_is_sent_and_a_command_handed_on() -> None:
    talk = Talk()
    talk.statuses = [AgentStatus(1.0, 0.0)]
    talk.hold(
        talk.welcome(), nothing, lambda: talk.hear(talk.server.command(Command("c1", "stats")))
    )
    assert talk.connection.kinds().count("AgentStatus") == 1
    assert talk.commands == [Command("c1", "stats")]


def test_a_decision_is_handed_on_after_its_command() -> None:
    talk = Talk()
    command, decision = Command("c1", "pause", at_step=7), Decision("c1", 7, run=True)
    talk.hold(
        talk.welcome(),
        lambda: talk.hear(talk.server.command(command)),
        lambda: talk.hear(talk.server.decision(decision)),
    )
    assert talk.commands == [command, decision]


def test_a_message_larger_than_the_server_takes_is_counted_and_the_rest_goes_on() -> None:
    talk = Talk()
    talk.server.max_message_bytes = 2000
    talk.put(1, "x" * 3000)
    talk.put()
    talk.hold(talk.welcome(), nothing, talk.ack(2))
    assert talk.connection.seqs() == [2]
    assert talk.outbox.losses.message().messages == {"too_large": 1}
    assert talk.outbox.is_empty


def test_a_welcome_that_does_not_come_in_time_ends_it() -> None:
    talk = Talk(welcome_timeout_s=0.0)
    with pytest.raises(ProtocolError, match="expected a welcome within 0 s"):
        talk.hold(nothing, nothing)


def test_an_acknowledgement_that_does_not_come_in_time_ends_it() -> None:
    talk = Talk(ack_timeout_s=0.0)
    talk.hold(talk.welcome(), nothing, nothing)  # nothing is owed
    talk = Talk(ack_timeout_s=0.0)
    talk.put()
    with pytest.raises(ProtocolError, match="expected an acknowledgement within 0 s"):
        talk.hold(talk.welcome(), nothing, nothing)


@pytest.mark.parametrize("after_welcome", [False, True])
def test_what_ended_the_connection_is_raised(after_welcome: bool) -> None:
    talk = Talk()

    def cut() -> None:
        talk.connection.error = ConnectionResetError("cut")
        talk.connection.is_closed = True
        talk.outbox.wakeup.set()

    with pytest.raises(ConnectionResetError):
        talk.hold(*([talk.welcome(), nothing] if after_welcome else []), cut, nothing)


class FakeFeed:
    """Has frames to send as long as the test says."""

    def __init__(self) -> None:
        self.frames: list[MapFrame] = []
        self.wishes: list[MapWanted] = []
        self.rooms: list[int] = []

    def wanted(self, message: MapWanted) -> None:
        self.wishes.append(message)
        self.frames.append(MapFrame(len(self.wishes)))

    def next_frame(self, max_bytes: int) -> MapFrame | None:
        self.rooms.append(max_bytes)
        return self.frames.pop(0) if self.frames else None


def test_the_map_goes_out_when_the_server_asks_and_after_what_is_durable() -> None:
    feed = FakeFeed()
    talk = Talk(map_feed=feed)
    wish = MapWanted(30.0, full=True)

    def ask() -> None:
        talk.put()
        talk.hear(talk.server.map_wanted(wish))

    # The server reads the hello only here: features come with the welcome.
    talk.hold(talk.welcome(), ask, nothing)
    assert feed.wishes == [wish]
    assert talk.connection.kinds()[3:] == ["Lost", "Event", "MapFrame"]
    assert set(feed.rooms) == {talk.session.max_message_bytes}


def test_a_server_that_knows_no_maps_is_sent_none() -> None:
    feed = FakeFeed()
    feed.frames = [MapFrame(1)]
    talk = Talk(map_feed=feed)

    def welcome() -> None:
        talk.hear(encode(Welcome(1, 0, features=["commands", "steps"])))

    talk.hold(welcome, nothing)
    assert talk.connection.kinds() == ["Hello", "Auth", "Register", "Lost"]
    assert feed.rooms == []


def test_without_a_feed_the_wish_is_passed_over() -> None:
    talk = Talk()
    talk.hold(talk.welcome(), lambda: talk.hear(talk.server.map_wanted(MapWanted(30.0))), nothing)
    assert talk.connection.kinds() == ["Hello", "Auth", "Register", "Lost"]
