from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.fake_streams import stream_record
from vramscope_protocol.codec import decode_server_message
from vramscope_protocol.errors import REPLACED, ProtocolError
from vramscope_protocol.messages import (
    Ack,
    Command,
    Decision,
    Error,
    MapWanted,
    SnapshotAck,
    Welcome,
)
from vramscope_protocol.session import ServerSession
from vramscope_protocol.version import FEATURE_MAP
from vramscope_server.ingest.connection import AgentConnection, Message


class Wire:
    """Keeps what is sent; blocks while it is held."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.close_code: int | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.progress = asyncio.Event()

    async def send(self, message: Message) -> None:
        await self.open.wait()
        if message["type"] == "websocket.close":
            self.close_code = message["code"]
        else:
            self.sent.append(decode_server_message(message["bytes"]))
        self.progress.set()

    async def wait_for(self, count: int) -> None:
        while len(self.sent) < count:
            self.progress.clear()
            await asyncio.wait_for(self.progress.wait(), 10)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 20))


def test_acks_that_wait_become_one() -> None:
    async def test() -> None:
        wire = Wire()
        connection = AgentConnection(ServerSession(), wire.send)
        sender = asyncio.create_task(connection.run_sender())
        connection.open(stream_record(last_seq=4), "test")
        await wire.wait_for(1)
        connection.ack(3)  # the agent knows that already
        for seq in (5, 6, 9):
            connection.ack(seq)
        await wire.wait_for(2)
        assert isinstance(wire.sent[0], Welcome)
        assert wire.sent[1:] == [Ack(9)]
        connection.close_after(12)
        connection.ack(11)
        connection.ack(12)
        await sender
        assert wire.sent[-1] == Ack(12)
        assert wire.close_code == 1000

    run(test())


def test_a_decision_is_sent_behind_its_command() -> None:
    async def test() -> None:
        wire = Wire()
        connection = AgentConnection(ServerSession(), wire.send)
        connection.open(stream_record(), "test")
        command, decision = Command("c", "stop", at_step=7), Decision("c", 7, run=True)
        assert connection.send_command(command)
        assert connection.send_decision(decision)
        connection.fail(ProtocolError(REPLACED, "enough"))
        assert not connection.send_decision(decision)
        await connection.run_sender()
        assert wire.sent[1:3] == [command, decision]

    run(test())


def test_a_failure_is_said_and_then_it_is_closed() -> None:
    async def test() -> None:
        wire = Wire()
        connection = AgentConnection(ServerSession(), wire.send)
        connection.open(stream_record(), "test")
        connection.ack(2)
        connection.fail(ProtocolError(REPLACED, "first reason"))
        connection.fail(ProtocolError(REPLACED, "second reason"))
        assert connection.is_failing
        assert not connection.send_command(Command("c", "stats"))
        await connection.run_sender()
        assert wire.sent[1:] == [Ack(2), Error("replaced", "first reason")]
        assert wire.close_code == 4409

    run(test())


def test_commands_wait_in_a_bounded_queue() -> None:
    async def test() -> None:
        wire = Wire()
        connection = AgentConnection(ServerSession(), wire.send, queue_frames=2)
        accepted = [connection.send_command(Command(str(n), "stats")) for n in range(3)]
        assert accepted == [True, True, False]
        sender = asyncio.create_task(connection.run_sender())
        await wire.wait_for(2)
        assert [message.id for message in wire.sent] == ["0", "1"]
        assert connection.send_command(Command("3", "stats"))
        await wire.wait_for(3)
        sender.cancel()
        await asyncio.wait({sender})

    run(test())


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("after close")])
def test_a_connection_that_is_gone_ends_the_sender(error: Exception) -> None:
    async def test() -> None:
        async def send(message: Message) -> None:
            raise error

        connection = AgentConnection(ServerSession(), send)
        connection.open(stream_record(), "test")
        await connection.run_sender()

    run(test())


def test_an_agent_that_does_not_read_ends_the_sender() -> None:
    async def test() -> None:
        wire = Wire()
        wire.open.clear()
        connection = AgentConnection(ServerSession(), wire.send, send_timeout_s=0.02)
        connection.open(stream_record(), "test")
        await connection.run_sender()
        assert wire.sent == []

    run(test())


def test_there_is_no_stream_before_it_opens() -> None:
    connection = AgentConnection(ServerSession(), Wire().send)
    assert not connection.is_open
    with pytest.raises(RuntimeError):
        _ = connection.stream


def test_an_answer_about_a_snapshot_goes_out() -> None:
    async def test() -> None:
        wire = Wire()
        connection = AgentConnection(ServerSession(), wire.send)
        sender = asyncio.create_task(connection.run_sender())
        connection.open(stream_record(), "test")
        connection.snapshot_ack(SnapshotAck("s1", 5))
        await wire.wait_for(2)
        assert wire.sent[1] == SnapshotAck("s1", 5)
        connection.fail(ProtocolError(REPLACED, "x"))
        await asyncio.wait_for(sender, 10)

    run(test())


def test_wishes_for_the_map_that_wait_become_one_that_begins_anew_if_any_did() -> None:
    async def test() -> None:
        wire = Wire()
        session = ServerSession()
        connection = AgentConnection(session, wire.send)
        assert not connection.want_map(MapWanted(30.0)), "an agent that sends no map"
        session.features = frozenset({FEATURE_MAP})
        sender = asyncio.create_task(connection.run_sender())
        connection.open(stream_record(), "test")
        await wire.wait_for(1)
        assert connection.want_map(MapWanted(30.0, full=True))
        assert connection.want_map(MapWanted(20.0))
        await wire.wait_for(2)
        assert wire.sent[1:] == [MapWanted(20.0, full=True)]
        connection.want_map(MapWanted(10.0))
        await wire.wait_for(3)
        assert wire.sent[2:] == [MapWanted(10.0)]
        sender.cancel()

    run(test())
