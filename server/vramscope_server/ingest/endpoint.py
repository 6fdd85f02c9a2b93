"""The agents' websocket, ``/ws/agent``: a bare ASGI endpoint that takes streams in.

One message: decode, check, count, publish to the hub, queue for the writer. Nothing is acked
before the writer has committed it, and a full queue stops the reading of the sockets that fill
it, so that an overload ends in the agents' own bounded outboxes and not in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from vramscope_protocol.codec import MAX_MESSAGE_BYTES
from vramscope_protocol.errors import (
    INTERNAL,
    REPLACED,
    SHUTTING_DOWN,
    TIMEOUT,
    ProtocolError,
    VramscopeError,
)
from vramscope_protocol.messages import (
    Goodbye,
    MapFrame,
    OomBegin,
    SnapshotBegin,
    SnapshotChunk,
)
from vramscope_protocol.session import ServerSession
from vramscope_server.auth.origin import check_origin
from vramscope_server.ingest.connection import AgentConnection
from vramscope_server.ingest.directory import AgentDirectory
from vramscope_server.ingest.handshake import (
    Authenticate,
    Disconnected,
    Newcomer,
    receive_message,
    shake_hands,
)
from vramscope_server.ingest.intake import CommandSink, Intake, Publisher
from vramscope_server.ingest.snapshot_intake import OomSink, SnapshotIntake, SnapshotSink
from vramscope_server.registry import persistence
from vramscope_server.registry.registry import Registry
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store
from vramscope_server.store.submission import Submission
from vramscope_server.store.writer import Acks, WriterLimits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_TICK_S: Final = 1.0


@dataclass(frozen=True)
class IngestLimits:
    """Bounds of the agents' side; any of them may be small in a test."""

    max_message_bytes: int = MAX_MESSAGE_BYTES
    handshake_s: float = 10.0
    send_timeout_s: float = 10.0
    max_connections: int = 4096
    stop_store_s: float = 10.0
    stop_agents_s: float = 2.0
    writer: WriterLimits = field(default_factory=WriterLimits)


class MapSink(Protocol):
    """Who keeps the memory maps. Called on the event loop; must not block."""

    def take(self, run_id: str, rank: int, frame: MapFrame) -> None:
        """A frame; raises ``ProtocolError`` for one that says what cannot be."""

    def rank_connected(self, run_id: str, rank: int) -> None:
        """Frames can be asked of this rank now."""


class Ingest:
    """Takes in what agents send. An instance is the ASGI endpoint itself.

    Args:
        authenticate: who presents a token from an address.
        software: name and version of this server, for the agents' logs.
        snapshots: stores what comes of snapshots.
        ooms: stores what comes of reports of running out of memory.
        maps: keeps the memory maps.
        reachable: whether others than this machine can reach the server; agents want to know.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        directory: AgentDirectory,
        publisher: Publisher,
        commands: CommandSink,
        authenticate: Authenticate,
        *,
        software: str = "",
        limits: IngestLimits | None = None,
        snapshots: SnapshotSink,
        ooms: OomSink,
        maps: MapSink,
        reachable: bool = False,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._registry = registry
        self._directory = directory
        self._publisher = publisher
        self._commands = commands
        self._authenticate = authenticate
        self._software = software
        self._limits = limits or IngestLimits()
        self._snapshots = snapshots
        self._ooms = ooms
        self._maps = maps
        self._reachable = reachable
        self._clock_ns = clock_ns
        self._readers: set[asyncio.Task[None]] = set()
        self._connections: set[AgentConnection] = set()
        self._ended = asyncio.Condition()
        self._stopping = False
        self._ticker: asyncio.Task[None] | None = None

    @property
    def connection_count(self) -> int:
        """Open connections, registered or not."""
        return len(self._connections)

    async def start(self) -> None:
        """Load what the store has, and start the writer."""
        loop = asyncio.get_running_loop()

        def on_commit(acks: Acks) -> None:
            loop.call_soon_threadsafe(self._deliver_acks, acks)

        def on_stream_failed(uid: str, reason: str) -> None:
            loop.call_soon_threadsafe(self._fail_stream, uid, reason)

        self._store.start(on_commit, on_stream_failed, self._limits.writer)
        await persistence.load(self._store, self._registry)
        self._ticker = asyncio.create_task(self._tick(), name="vramscope-registry-tick")

    async def stop(self) -> None:
        """Stop in stages: read no more, commit what was read, ack it, say why, close."""
        self._stopping = True
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.wait({self._ticker})
        for reader in self._readers:
            reader.cancel()
        await asyncio.to_thread(self._store.stop, self._limits.stop_store_s)
        # The writer's last acks were handed to the loop before it ended: they come first.
        await asyncio.sleep(0)
        for connection in self._connections:
            connection.fail(ProtocolError(SHUTTING_DOWN, "the server is shutting down"))
        try:
            await asyncio.wait_for(self._all_ended(), self._limits.stop_agents_s)
        except asyncio.TimeoutError:  # not the builtin one before Python 3.11
            return  # the agents that do not read are left to the server that owns the sockets

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection from its request to its end."""
        await receive()  # websocket.connect
        try:
            _check_origin(scope)
        except VramscopeError:
            await send({"type": "websocket.close"})  # before the accept: HTTP 403
            return
        await send({"type": "websocket.accept"})
        connection = AgentConnection(
            ServerSession(self._limits.max_message_bytes, reachable=self._reachable),
            send,
            send_timeout_s=self._limits.send_timeout_s,
        )
        self._connections.add(connection)
        try:
            await self._serve(scope, receive, connection)
        finally:
            self._connections.discard(connection)
            self._left(connection)
            async with self._ended:
                self._ended.notify_all()

    async def _serve(self, scope: Message, receive: Receive, connection: AgentConnection) -> None:
        """Run reader and sender; whichever ends first ends the other."""
        sender = asyncio.create_task(connection.run_sender(), name="vramscope-agent-sender")
        reader = asyncio.create_task(
            self._read(scope, receive, connection), name="vramscope-agent-reader"
        )
        self._readers.add(reader)
        try:
            await asyncio.wait({sender, reader}, return_when=asyncio.FIRST_COMPLETED)
            error = _protocol_error(reader)
            if error is not None:
                connection.fail(error)
            elif reader.done() and not reader.cancelled() and not connection.is_failing:
                sender.cancel()  # the agent left
            # A reader that stop() cancelled: the last acks are to come, and then the reason.
            await asyncio.wait({sender})
        finally:
            self._readers.discard(reader)
            sender.cancel()
            reader.cancel()
            await asyncio.wait({sender, reader})
        if not reader.cancelled() and _protocol_error(reader) is None:
            reader.result()  # nothing of the kind that is expected: let it be seen

    async def _read(self, scope: Message, receive: Receive, connection: AgentConnection) -> None:
        """Take messages until the agent leaves."""
        try:
            newcomer = await asyncio.wait_for(
                self._shake_hands(scope, receive, connection), self._limits.handshake_s
            )
            stream = await persistence.register(
                self._store, self._registry, newcomer.register, self._clock_ns(), newcomer.owner
            )
            connection.open(stream, self._software)
            self._entered(connection)
            # It may have failed after it was registered and before it could be told here.
            if self._store.has_failed(stream):
                raise ProtocolError(INTERNAL, "the stream failed while it was registered")
            await self._take_messages(receive, connection)
        except Disconnected:
            return
        except asyncio.TimeoutError:  # not the builtin one before Python 3.11
            raise ProtocolError(
                TIMEOUT, f"expected hello, auth and register within {self._limits.handshake_s} s"
            ) from None
        except StoreError as error:
            raise ProtocolError(INTERNAL, error.message) from None

    async def _shake_hands(
        self, scope: Message, receive: Receive, connection: AgentConnection
    ) -> Newcomer:
        if self._stopping:
            raise ProtocolError(SHUTTING_DOWN, "the server is shutting down")
        if self.connection_count > self._limits.max_connections:
            raise ProtocolError(INTERNAL, f"expected at most {self._limits.max_connections} agents")
        client = scope.get("client")
        address = str(client[0]) if client else ""
        return await shake_hands(connection.session, receive, self._authenticate, address)

    async def _take_messages(self, receive: Receive, connection: AgentConnection) -> None:
        intake = Intake(
            connection.stream,
            connection.session,
            self._registry,
            self._publisher,
            self._commands,
            self._clock_ns,
        )
        with contextlib.closing(
            SnapshotIntake(connection, self._snapshots, self._ooms)
        ) as snapshots:
            while not connection.is_failing:
                message = await receive_message(connection.session, receive)
                if message is None:
                    continue
                if isinstance(message, (SnapshotBegin, SnapshotChunk, OomBegin)):
                    snapshots.take(message)
                    continue
                if isinstance(message, MapFrame):
                    self._maps.take(*connection.key, message)
                    continue
                submission = intake.take(message)
                if submission is not None:
                    if not self._store.submit(submission):
                        await self._submit_when_space(submission)
                    if isinstance(message, Goodbye):
                        connection.close_after(message.seq)

    async def _submit_when_space(self, submission: Submission) -> None:
        """Wait for the writer; the socket is not read meanwhile, which slows the agent down."""
        loop = asyncio.get_running_loop()
        while not self._store.submit(submission):
            if not self._store.is_writing:
                raise ProtocolError(INTERNAL, "the store takes no messages any more")
            space = asyncio.Event()
            self._store.when_space(partial(loop.call_soon_threadsafe, space.set))
            await space.wait()

    def _entered(self, connection: AgentConnection) -> None:
        replaced = self._directory.add(connection)
        if replaced is not None:
            replaced.fail(ProtocolError(REPLACED, "the same stream came on a newer connection"))
        run_id, rank = connection.key
        self._registry.connected(connection.stream.uid)
        self._commands.rank_connected(run_id, rank)
        self._maps.rank_connected(run_id, rank)
        self._publisher.run_changed(run_id)

    def _left(self, connection: AgentConnection) -> None:
        if not connection.is_open or not self._directory.remove(connection):
            return
        run_id, rank = connection.key
        self._registry.disconnected(connection.stream.uid)
        if not self._directory.connected(run_id, rank):
            self._commands.rank_disconnected(run_id, rank)
        self._publisher.run_changed(run_id)

    def _deliver_acks(self, acks: Acks) -> None:
        for uid, seq in acks.items():
            connection = self._directory.of_stream(uid)
            if connection is not None:
                connection.ack(seq)

    def _fail_stream(self, uid: str, reason: str) -> None:
        connection = self._directory.of_stream(uid)
        if connection is not None:
            connection.fail(ProtocolError(INTERNAL, reason))

    async def _all_ended(self) -> None:
        async with self._ended:
            await self._ended.wait_for(lambda: self.connection_count == 0)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            for run_id in self._registry.tick():
                self._publisher.run_changed(run_id)


def _protocol_error(reader: asyncio.Task[None]) -> ProtocolError | None:
    if not reader.done() or reader.cancelled():
        return None
    error = reader.exception()
    return error if isinstance(error, ProtocolError) else None


def _check_origin(scope: Message) -> None:
    """Agents send no Origin; a web page does, and only one of this server may connect.

    Raises:
        VramscopeError: ``origin_refused``.
    """
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    origin = headers.get(b"origin")
    if origin is not None:
        check_origin(origin, headers.get(b"host", ""))
