"""An agent that does what a test says: speaks the protocol, frame by frame, and remembers."""

from __future__ import annotations

import time
import uuid
from array import array
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Protocol

from websockets.sync.client import ClientConnection, connect

from vramscope_protocol.account import AgentAccount
from vramscope_protocol.codec import encode
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.messages import (
    Ack,
    AgentStatus,
    Batch,
    BatchKind,
    Command,
    CommandUpdate,
    Decision,
    DeviceInfo,
    Event,
    Field,
    FieldTable,
    Goodbye,
    MapFrame,
    MapWanted,
    Message,
    OomBegin,
    RankInfo,
    Register,
    RunInfo,
    ServerMessage,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
    Welcome,
)
from vramscope_protocol.session import AgentSession

TIMEOUT_S = 15.0
GIB = 1 << 30
ALLOCATED = "allocated_bytes.all.current"
RESERVED = "reserved_bytes.all.current"
COMMANDS = ("empty_cache", "gc_collect", "memory_summary", "stats", "reset_peaks")


class Wire(Protocol):
    """A websocket, whoever carries it."""

    def send(self, frame: bytes) -> None:
        """Send one binary frame."""
        ...

    def receive(self, timeout_s: float) -> bytes:
        """The next binary frame."""
        ...

    def close(self) -> None:
        """Close with a closing handshake."""
        ...


class SocketWire:
    """A wire to a real server."""

    def __init__(self, url: str, **options: Any) -> None:
        address = url.replace("http", "ws", 1) + "/ws/agent"
        options = {"compression": None, "max_size": None, "proxy": None, **options}
        self._stack = ExitStack()
        self.connection: ClientConnection = self._stack.enter_context(connect(address, **options))

    def send(self, frame: bytes) -> None:
        """Send one binary frame."""
        self.connection.send(frame)

    def receive(self, timeout_s: float) -> bytes:
        """The next binary frame."""
        frame = self.connection.recv(timeout=timeout_s)
        assert isinstance(frame, bytes), f"expected a binary frame, got {frame!r}"
        return frame

    def close(self) -> None:
        """Close with a closing handshake."""
        self._stack.close()


class ScriptedAgent:
    """One rank of one run, on one wire at a time.

    Args:
        open_wire: makes a connection; called again by :meth:`reconnect`.
        token: secret with the scope agent.
        rank: of ``world_size``.
        run_id, run: identity and name of the run.
        about: what else it says of its rank; see :class:`RankInfo`.
    """

    def __init__(
        self,
        open_wire: Callable[[], Wire],
        token: str = "test-token",
        *,
        rank: int = 0,
        world_size: int = 1,
        run_id: str = "0123456789ab",
        run: str = "train",
        pid: int = 4242,
        host: str = "elsewhere",
        **about: Any,
    ) -> None:
        device = DeviceInfo(0, "Fake GPU", f"GPU-{rank}", 8 * GIB)
        self.stream = uuid.uuid4().hex
        self.run = RunInfo(run_id, run, world_size, user="tester", script="train.py")
        self.rank = RankInfo(
            rank,
            host,
            pid,
            rank,
            time.time_ns(),
            [device],
            {"vramscope": "test"},
            commands=list(COMMANDS),
            **about,
        )
        self.token = token
        self.run_secret = ""
        self.seat_secret = ""
        self.seq = 0
        self.acked = 0
        self.commands: list[Command] = []
        self.decisions: list[Decision] = []
        self._rows: dict[str, int] = {"sample": 0, "step": 0}
        self._last_ns = 0
        self._open_wire = open_wire
        self._wire: Wire | None = None
        self.session = AgentSession(token, self._register())

    def __enter__(self) -> ScriptedAgent:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def wire(self) -> Wire:
        """The open connection."""
        assert self._wire is not None, "the agent is not connected"
        return self._wire

    def open(self) -> ScriptedAgent:
        """Connect, introduce itself, and wait for the welcome."""
        self._wire = self._open_wire()
        self.session = AgentSession(self.token, self._register())
        try:
            for frame in self.session.opening_frames():
                self._wire.send(frame)
            welcome = self.receive()
            assert isinstance(welcome, Welcome), f"expected a welcome, got {welcome}"
        except BaseException:
            self.close()
            raise
        self.acked = welcome.last_seq
        return self

    def reconnect(self) -> ScriptedAgent:
        """Come back on a new connection with the same stream."""
        self.close()
        return self.open()

    def close(self) -> None:
        """Close the connection without a goodbye."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def receive(self, timeout_s: float = TIMEOUT_S) -> ServerMessage:
        """The next message of the server; acks and commands are noted as well."""
        message = self.session.receive(self.wire.receive(timeout_s))
        assert message is not None, "the server sent a message of an unknown type"
        if isinstance(message, Ack):
            self.acked = message.seq
        elif isinstance(message, Command):
            self.commands.append(message)
        elif isinstance(message, Decision):
            self.decisions.append(message)
        return message

    def wait_acked(self, seq: int | None = None) -> None:
        """Wait until everything up to ``seq`` (else: everything sent) is committed."""
        wanted = self.seq if seq is None else seq
        while self.acked < wanted:
            self.receive()

    def wait_command(self) -> Command:
        """The next command that was not waited for before."""
        while not self.commands:
            self.receive()
        return self.commands.pop(0)

    def wait_decision(self) -> Decision:
        """The next decision that was not waited for before."""
        while not self.decisions:
            self.receive()
        return self.decisions.pop(0)

    def samples(self, count: int = 1, *, step: int = 0, **columns: list[Any]) -> None:
        """Send rows of samples: constant counters, or the columns given."""
        self._batch("sample", count, step, columns)

    def steps(self, count: int = 1, *, step: int = 1, **columns: list[Any]) -> None:
        """Send rows of steps ``step``, ``step + 1``, ..."""
        self._batch("step", count, step, columns)

    def event(self, kind: str, text: str = "", **data: Any) -> None:
        """Send an event."""
        self._send(Event(self._next_seq(), time.time_ns(), kind, None, text, data))

    def status(self, rate_hz: float = 10.0, account: AgentAccount | None = None) -> None:
        """Send what watching costs."""
        self._send(AgentStatus(rate_hz, 0.001, account=account))

    def snapshot(self, begin: SnapshotBegin, packed: bytes, pieces: int = 1 << 30) -> SnapshotAck:
        """Send a snapshot in pieces of 1000 bytes, at most so many; the last answer."""
        self.send(begin)
        ack = self.wait_snapshot_ack()
        while not ack.refused and ack.offset < len(packed) and pieces > 0:
            data = packed[ack.offset : ack.offset + 1000]
            self.send(SnapshotChunk(begin.id, ack.offset, data))
            ack = self.wait_snapshot_ack()
            pieces -= 1
        return ack

    def oom(self, begin: OomBegin, data: bytes, pieces: int = 1 << 30) -> SnapshotAck:
        """Send a report in pieces of 1000 bytes, or the first few of them; the last answer."""
        self.send(begin)
        ack = self.wait_snapshot_ack()
        while not ack.refused and ack.offset < len(data) and pieces:
            pieces -= 1
            self.send(SnapshotChunk(begin.id, ack.offset, data[ack.offset : ack.offset + 1000]))
            ack = self.wait_snapshot_ack()
        return ack

    def wait_snapshot_ack(self) -> SnapshotAck:
        """The next answer about a snapshot."""
        while not isinstance(message := self.receive(), SnapshotAck):
            pass
        return message

    def send(self, message: Message) -> None:
        """Send a message as it is."""
        self.wire.send(encode(message))

    def update(self, command: Command, state: CommandState, **receipt: Any) -> None:
        """Answer a command; a final state carries a receipt."""
        is_final = state not in {"queued", "prepared", "running"}
        body = Receipt(state, dry_run=command.dry_run, **receipt) if is_final else None
        self._send(CommandUpdate(self._next_seq(), command.id, state, time.time_ns(), body))

    def prepared(self, command: Command) -> None:
        """Say that the rank is ready for the step of a command."""
        update = CommandUpdate(self._next_seq(), command.id, "prepared", time.time_ns())
        update.at_step = command.at_step
        self._send(update)

    def map_frame(self, frame: MapFrame) -> None:
        """Send a frame of the memory map."""
        self._send(frame)

    def wait_map_wanted(self) -> MapWanted:
        """Wait until the server asks for the memory map."""
        while True:
            message = self.receive()
            if isinstance(message, MapWanted):
                return message

    def goodbye(
        self, reason: Literal["exit", "detach", "exception"] = "exit", exit_code: int = 0
    ) -> None:
        """Say that the stream ends."""
        self._send(Goodbye(self._next_seq(), time.time_ns(), reason, exit_code))

    def _batch(
        self, kind: BatchKind, count: int, step: int, columns: Mapping[str, list[Any]]
    ) -> None:
        # Time never goes back within a stream, however fast the test sends.
        now_ns = max(time.time_ns(), self._last_ns + 1)
        self._last_ns = now_ns + count * 1000
        values: dict[str, list[Any]] = {
            "time_ns": [now_ns + i * 1000 for i in range(count)],
            "step": [step + (i if kind == "step" else 0) for i in range(count)],
            ALLOCATED: [GIB] * count,
            RESERVED: [2 * GIB] * count,
        }
        if kind == "step":
            values["reserved_bytes.all.peak"] = [2 * GIB] * count
        values |= {name.replace("__", "."): column for name, column in columns.items()}
        table = 1 if kind == "sample" else 2
        self._send(FieldTable(table, [Field(name, "q") for name in values]))
        body = encode_columns(array("q", column) for column in values.values())
        first = self._rows[kind]
        self._rows[kind] += count
        self._send(Batch(self._next_seq(), kind, table, first, count, body))

    def _register(self) -> Register:
        return Register(
            self.stream,
            self.run,
            self.rank,
            run_secret=self.run_secret,
            seat_secret=self.seat_secret,
        )

    def _next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def _send(self, message: Any) -> None:
        self.wire.send(encode(message))


def socket_agent(url: str, token: str = "test-token", **options: Any) -> ScriptedAgent:
    """An agent of a real server at ``url``; not yet connected."""
    return ScriptedAgent(lambda: SocketWire(url), token, **options)
