from __future__ import annotations

from tests.support.fake_streams import stream_record
from vramscope_protocol.messages import Command, Decision, MapWanted
from vramscope_protocol.session import ServerSession
from vramscope_protocol.version import FEATURE_MAP, FEATURE_PREPARE
from vramscope_server.ingest.connection import AgentConnection, Message
from vramscope_server.ingest.directory import AgentDirectory
from vramscope_server.store.runs import StreamRecord


async def never(message: Message) -> None:
    raise AssertionError(message)


def connection_of(stream: StreamRecord) -> AgentConnection:
    connection = AgentConnection(ServerSession(), never, queue_frames=2)  # welcome and one more
    connection.open(stream, "test")
    return connection


def test_a_second_connection_of_a_stream_takes_over() -> None:
    directory = AgentDirectory()
    first, second = connection_of(stream_record()), connection_of(stream_record())
    assert directory.add(first) is None
    assert directory.add(second) is first
    assert not directory.remove(first)
    assert directory.of_stream("stream-a") is second
    assert directory.remove(second)
    assert directory.of_stream("stream-a") is None
    assert len(directory) == 0


def test_commands_go_to_the_newest_life_of_a_rank() -> None:
    directory = AgentDirectory()
    old, new = connection_of(stream_record("a", 1)), connection_of(stream_record("b", 2))
    directory.add(new)
    directory.add(old)  # comes back to deliver what it has left
    assert directory.send_command("run-a", 0, Command("c1", "stats"))
    assert not directory.send_command("run-a", 0, Command("c2", "stats"))  # its queue is full
    assert not directory.send_command("run-a", 1, Command("c3", "stats"))
    assert directory.remove(old)
    assert directory.connected("run-a", 0)
    assert directory.remove(new)
    assert not directory.connected("run-a", 0)


def test_decisions_go_where_commands_go_and_have_room_when_those_have_none() -> None:
    directory = AgentDirectory()
    connection = connection_of(stream_record("a", 1))
    drop = Decision("c1", 7, run=False, reason="rank 1 refused")
    assert not directory.send_decision("run-a", 0, drop)
    assert directory.can_prepare("run-a", 0) is None
    assert directory.life("run-a", 0) is None
    directory.add(connection)
    assert directory.life("run-a", 0) == "a"
    assert directory.can_prepare("run-a", 0) is False
    connection.session.features = frozenset({FEATURE_PREPARE})
    assert directory.can_prepare("run-a", 0) is True
    assert directory.send_command("run-a", 0, Command("c1", "stats"))
    assert not directory.send_command("run-a", 0, Command("c2", "stats"))
    assert [directory.send_decision("run-a", 0, drop) for _ in range(3)] == [True, True, False]


def test_the_map_is_asked_of_the_newest_life_of_a_rank() -> None:
    directory = AgentDirectory()
    old, new = connection_of(stream_record("a", 1)), connection_of(stream_record("b", 2))
    new.session.features = frozenset({FEATURE_MAP})
    directory.add(new)
    directory.add(old)
    assert directory.want_map("run-a", 0, MapWanted(30.0))
    assert not directory.want_map("run-a", 1, MapWanted(30.0))
    directory.remove(new)
    directory.remove(old)
    assert not directory.want_map("run-a", 0, MapWanted(30.0))
