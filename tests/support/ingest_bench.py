"""An ingest endpoint on a store of its own, with recording stand-ins for its neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.asgi_socket import WAIT_S, AsgiSocket
from tests.support.streams import FIELDS, open_store, registration
from vramscope_protocol.codec import decode_server_message, encode
from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_protocol.messages import (
    Ack,
    Auth,
    CommandUpdate,
    Error,
    Field,
    FieldTable,
    Hello,
    Message,
    OomBegin,
    Register,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
    Welcome,
)
from vramscope_server.auth.principal import Principal
from vramscope_server.ingest.directory import AgentDirectory
from vramscope_server.ingest.endpoint import Ingest, IngestLimits
from vramscope_server.maps.maps import Maps
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.registry.registry import Registry
from vramscope_server.rows import Rows
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.store import Store
from vramscope_server.store.writer import WriterLimits

TOKEN = "secret"
OTHER_TOKEN = "other-secret"
QUICK = IngestLimits(writer=WriterLimits(commit_interval_s=0.02, retry_s=0.02))


class RecordingNeighbours:
    """Hub and coordinator in one: keeps what it is told."""

    def __init__(self) -> None:
        self.samples: list[Rows] = []
        self.steps: list[Rows] = []
        self.lives: list[LifeOffset] = []
        self.events: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.updates: list[CommandUpdate] = []
        self.connections: list[tuple[str, int]] = []
        self.changes: list[str] = []
        self.snapshots: list[SnapshotBegin | SnapshotChunk] = []
        self.snapshots_may_be_stored = asyncio.Event()
        self.snapshots_may_be_stored.set()

    def publish_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        self.samples.append(rows)

    def publish_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        self.steps.append(rows)
        self.lives.append(life)

    def publish_event(self, run_id: str, event: dict[str, Any]) -> None:
        self.events.append(event)

    def publish_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        self.statuses.append(status)

    def run_changed(self, run_id: str) -> None:
        self.changes.append(run_id)

    def command_update(self, run_id: str, rank: int, update: CommandUpdate) -> None:
        self.updates.append(update)

    async def take(
        self, stream: StreamRecord, message: SnapshotBegin | SnapshotChunk
    ) -> SnapshotAck:
        self.snapshots.append(message)
        await self.snapshots_may_be_stored.wait()
        return SnapshotAck(message.id, len(self.snapshots))

    def rank_connected(self, run_id: str, rank: int) -> None:
        self.connections.append(("connected", rank))

    def rank_disconnected(self, run_id: str, rank: int) -> None:
        self.connections.append(("disconnected", rank))


class RecordingReports:
    """Keeps what comes of reports of running out of memory."""

    def __init__(self) -> None:
        self.pieces: list[OomBegin | SnapshotChunk] = []

    async def take(self, stream: StreamRecord, message: OomBegin | SnapshotChunk) -> SnapshotAck:
        self.pieces.append(message)
        return SnapshotAck(message.id, 1000 + len(self.pieces))


async def authenticate(token: str, address: str) -> Principal:
    """Three tokens: two for agents and one that only looks."""
    if token in (TOKEN, OTHER_TOKEN):
        return Principal(token, frozenset({"agent"}), parent=token)
    if token == "viewer":
        return Principal(token, frozenset({"view"}), parent=token)
    raise VramscopeError(AUTH_FAILED, "expected a token of this server")


class Bench:
    """The endpoint and everything around it."""

    def __init__(self, folder: Path, limits: IngestLimits = QUICK) -> None:
        self.now_ns = 1_800_000_000 * 10**9
        self.alive_pids: set[int] = set()
        self.store: Store = open_store(folder)
        self.registry = Registry(
            lambda: self.now_ns, 300.0, "host-a", lambda pid: pid in self.alive_pids
        )
        self.directory = AgentDirectory()
        self.neighbours = RecordingNeighbours()
        self.reports = RecordingReports()
        self.maps = Maps(self.directory.want_map, 1 << 24)
        self.ingest = Ingest(
            self.store,
            self.registry,
            self.directory,
            self.neighbours,
            self.neighbours,
            authenticate,
            snapshots=self.neighbours,
            ooms=self.reports,
            maps=self.maps,
            software="test",
            limits=limits,
        )

    def socket(self, **options: Any) -> AsgiSocket:
        return AsgiSocket(self.ingest, **options)


@asynccontextmanager
async def running_bench(folder: Path, limits: IngestLimits = QUICK) -> AsyncIterator[Bench]:
    """A bench that is started, and stopped at the end."""
    bench = Bench(folder, limits)
    await bench.ingest.start()
    try:
        yield bench
    finally:
        await bench.ingest.stop()
        bench.store.close()


def send(socket: AsgiSocket, *messages: Message) -> None:
    """Send messages of an agent."""
    for message in messages:
        socket.send_bytes(encode(message))


async def receive(socket: AsgiSocket) -> Message | None:
    """Next message of the server; ``None`` when it closed."""
    frame = await socket.next_frame()
    return None if frame is None else decode_server_message(frame)


async def open_stream(
    socket: AsgiSocket, register: Register | None = None, fields: list[Field] = FIELDS
) -> Welcome:
    """Open a stream and name the columns."""
    send(socket, Hello(1), Auth(TOKEN), register or registration(), FieldTable(1, fields))
    welcome = await receive(socket)
    assert isinstance(welcome, Welcome), welcome
    return welcome


async def ack_of(socket: AsgiSocket, seq: int) -> None:
    """Wait until everything up to ``seq`` is acked."""

    async def wait() -> None:
        while True:
            message = await receive(socket)
            assert isinstance(message, Ack), message
            assert message.seq <= seq
            if message.seq == seq:
                return

    await asyncio.wait_for(wait(), WAIT_S)


async def refusal(socket: AsgiSocket) -> tuple[str, int | None]:
    """The error that ends the connection: its code, and the close code."""
    while True:
        message = await receive(socket)
        if isinstance(message, Error):
            assert await receive(socket) is None
            return message.code, socket.close_code
        assert isinstance(message, (Ack, Welcome)), message
