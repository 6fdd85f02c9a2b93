"""A server for agents that does what a test tells it: acknowledge, hang, refuse, lie, die."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from vramscope_protocol.codec import encode
from vramscope_protocol.columns import decode_columns
from vramscope_protocol.errors import CLOSE_CODES, ProtocolError
from vramscope_protocol.messages import (
    AgentMessage,
    AgentStatus,
    Auth,
    Batch,
    Command,
    CommandUpdate,
    Decision,
    Event,
    FieldTable,
    Goodbye,
    Lost,
    OomBegin,
    Register,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
)
from vramscope_protocol.session import ServerSession

TOKEN = "secret-of-the-fake-server"
Durable = (Batch, Event, CommandUpdate, Goodbye)
M = TypeVar("M", bound=AgentMessage)


@dataclass
class Behaviour:
    """What the server does wrong; the default is nothing."""

    acks: bool = True
    refuse: str | None = None
    """Error code that answers the token instead of a welcome."""
    close_silently: bool = False
    """Close with the code of ``refuse`` but without an error message before it."""
    welcomes: bool = True
    stops_reading: bool = False
    """Welcome, then never read again."""
    after_welcome: list[bytes | str] = field(default_factory=list)
    """Frames sent right after the welcome."""
    last_seq: int | None = None
    """Lie about what was stored."""
    max_message_bytes: int = 1 << 20
    reachable: bool = False
    """Say that other machines can reach it."""
    takes_snapshots: bool = True
    """Otherwise their pieces are never answered."""


class FakeServer:
    """Listens on a port of its own; a context manager. Keeps what streams sent across restarts."""

    token = TOKEN

    def __init__(self, behaviour: Behaviour | None = None, port: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.port = port
        self.messages: list[AgentMessage] = []
        self.connections = 0
        self.duplicates = 0
        self.errors: list[ProtocolError] = []
        self._last_seq: dict[str, int] = {}
        self._tables: dict[str, dict[int, FieldTable]] = {}
        self._open: set[ServerConnection] = set()
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> FakeServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Address as an agent is given it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; again on the same port after :meth:`stop`."""
        listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        self.port = listener.getsockname()[1]
        self._released.clear()
        self._server = serve(
            self._handle, sock=listener, compression=None, ping_interval=None, close_timeout=0.2
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and cut every connection without a closing handshake."""
        self._released.set()
        if self._server is not None:
            self._server.shutdown()
        self.cut()
        if self._thread is not None:
            self._thread.join(5)

    def cut(self) -> None:
        """Cut every connection as a pulled cable would."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def send(self, message: Command | Decision) -> None:
        """Send a command, or a decision, on every open connection."""
        for connection in list(self._open):
            connection.send(encode(message))

    def wait_for(self, predicate: Callable[[FakeServer], Any], timeout_s: float = 10.0) -> None:
        """Wait until something arrived that makes ``predicate`` hold."""
        with self._changed:
            if not self._changed.wait_for(lambda: predicate(self), timeout_s):
                kinds = [type(message).__name__ for message in self.messages][-100:]
                raise AssertionError(f"waited {timeout_s} s; got {kinds}, {self.errors}")

    def of_type(self, kind: type[M]) -> list[M]:
        """Messages of one type, in the order of arrival."""
        return [message for message in self.messages if isinstance(message, kind)]

    def seqs(self, stream: str | None = None) -> list[int]:
        """Sequence numbers as they would be stored (duplicates dropped)."""
        return [message.seq for message in self.messages if isinstance(message, Durable)]

    def rows(self, kind: str) -> Iterator[dict[str, Any]]:
        """Rows of one kind, by column name."""
        tables = {table.table: table for table in self.of_type(FieldTable)}
        for batch in self.of_type(Batch):
            if batch.kind == kind:
                names = [field.name for field in tables[batch.table].fields]
                columns = decode_columns(batch.columns, len(names), batch.count)
                for row in zip(*columns, strict=True):
                    yield dict(zip(names, row, strict=True))

    @property
    def goodbye(self) -> Goodbye | None:
        """The last goodbye."""
        goodbyes = self.of_type(Goodbye)
        return goodbyes[-1] if goodbyes else None

    @property
    def lost(self) -> Lost:
        """The newest totals of what was lost."""
        return [Lost(), *self.of_type(Lost)][-1]

    @property
    def status(self) -> AgentStatus | None:
        """The newest status."""
        statuses = self.of_type(AgentStatus)
        return statuses[-1] if statuses else None

    # ------------------------------------------------------------------------- one connection

    def _handle(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        with self._changed:
            self.connections += 1
            self._changed.notify_all()
        session = ServerSession(
            self.behaviour.max_message_bytes, reachable=self.behaviour.reachable
        )
        try:
            self._serve(connection, session)
        except ConnectionClosed:
            pass
        except ProtocolError as error:
            self.errors.append(error)
            connection.send(session.fail(error))
            connection.close(error.close_code)
        finally:
            self._open.discard(connection)

    def _serve(self, connection: ServerConnection, session: ServerSession) -> None:
        stream = ""
        for frame in connection:
            message = session.receive(frame)
            if message is None:
                continue
            if isinstance(message, Auth):
                self._authenticate(connection, session, message)
            elif isinstance(message, Register):
                stream = message.stream
                self._note(message)
                if not self.behaviour.welcomes:
                    self._released.wait(30)
                    return
                self._welcome(connection, session, stream)
            else:
                self._take(connection, session, stream, message)

    def _authenticate(
        self, connection: ServerConnection, session: ServerSession, message: Auth
    ) -> None:
        code = self.behaviour.refuse or ("auth_failed" if message.token != self.token else None)
        if code is None:
            session.authenticated()
            return
        if self.behaviour.close_silently:
            connection.close(CLOSE_CODES[code])
            raise ConnectionClosed(None, None)
        raise ProtocolError(code, "no such token")

    def _welcome(self, connection: ServerConnection, session: ServerSession, stream: str) -> None:
        last_seq = self.behaviour.last_seq
        if last_seq is None:
            last_seq = self._last_seq.get(stream, 0)
        connection.send(session.welcome(last_seq))
        for frame in self.behaviour.after_welcome:
            connection.send(frame)
        if self.behaviour.stops_reading:
            # The library's own thread stops reading too, once its queue of frames is full.
            self._released.wait(60)
            raise ConnectionClosed(None, None)

    def _take(
        self,
        connection: ServerConnection,
        session: ServerSession,
        stream: str,
        message: AgentMessage,
    ) -> None:
        if not isinstance(message, Durable):
            self._note(message)
            if self.behaviour.takes_snapshots:
                self._answer_snapshot(connection, session, message)
            return
        if session.is_duplicate(message.seq):
            self.duplicates += 1
        elif self.behaviour.acks:
            self._last_seq[stream] = message.seq
            self._note(message)
        else:
            self._note(message)
        if self.behaviour.acks:
            connection.send(session.ack(message.seq))

    def _answer_snapshot(
        self, connection: ServerConnection, session: ServerSession, message: AgentMessage
    ) -> None:
        if isinstance(message, (SnapshotBegin, OomBegin)):
            connection.send(session.snapshot_ack(SnapshotAck(message.id, 0)))
        elif isinstance(message, SnapshotChunk):
            ack = SnapshotAck(message.id, message.offset + len(message.data))
            connection.send(session.snapshot_ack(ack))

    def _note(self, message: AgentMessage) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()


@contextlib.contextmanager
def silent_listener() -> Iterator[str]:
    """Address of something that accepts connections and never says or reads a byte."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 10.0) -> None:
    """Poll for something that no event tells of; fail with ``what`` when the time is over."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"waited {timeout_s} s for {what}")
        time.sleep(0.01)
