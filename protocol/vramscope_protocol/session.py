"""The agent connection as two sans-I/O state machines: frames in, messages out, nothing else.

    agent                                   server
      hello, auth, register  ------------>    hello -> auth -> register -> open
                             <------------    welcome(last_seq)
      field_table, batch ... ------------>
                             <------------    ack(seq), command
      goodbye(seq)           ------------>
                             <------------    ack(seq), close

The agent sends its first three messages without waiting (one round trip to open). Either side
ends with ``closing``; the server says why in an ``error`` before it closes.
"""

from __future__ import annotations

from enum import Enum

from vramscope_protocol.codec import (
    MAX_BATCH_ROWS,
    MAX_FIELDS,
    MAX_MESSAGE_BYTES,
    MAX_SNAPSHOT_CHUNK_BYTES,
    MAX_SNAPSHOT_STEPS,
    MAX_TABLES,
    decode_agent_message,
    decode_server_message,
    encode,
)
from vramscope_protocol.columns import column_slices, holds_columns
from vramscope_protocol.errors import (
    BAD_MESSAGE,
    UNEXPECTED_MESSAGE,
    VERSION_MISMATCH,
    ProtocolError,
)
from vramscope_protocol.messages import (
    Ack,
    AgentMessage,
    Auth,
    Batch,
    Command,
    Decision,
    Error,
    Field,
    FieldTable,
    Hello,
    MapWanted,
    Register,
    ServerMessage,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
    Welcome,
)
from vramscope_protocol.version import AGENT_FEATURES, PROTOCOL_VERSION, SERVER_FEATURES


class State(Enum):
    """Where a connection is; the value is what is expected next."""

    WELCOME = "welcome"
    HELLO = "hello"
    AUTH = "auth"
    REGISTER = "register"
    OPEN = "data"
    CLOSING = "nothing"


class AgentSession:
    """The agent's side of one connection. A new connection takes a new session.

    Args:
        token: secret of the server, sent alone in its message.
        register: which stream follows.
        software: name and version of the agent, for the server's log.
    """

    def __init__(self, token: str, register: Register, software: str = "") -> None:
        self._token = token
        self._register = register
        self._software = software
        self.state = State.WELCOME
        self.last_acked_seq = 0
        self.features: frozenset[str] = frozenset()
        self.max_message_bytes = MAX_MESSAGE_BYTES

    def opening_frames(self) -> list[bytes]:
        """The three frames that open the stream."""
        hello = Hello(PROTOCOL_VERSION, list(AGENT_FEATURES), self._software)
        return [encode(hello), encode(Auth(self._token)), encode(self._register)]

    def receive(self, frame: bytes | str) -> ServerMessage | None:
        """Take one frame of the server; ``None`` if it is of a type unknown to this version.

        An ``Error`` moves the session to closing and is returned for the caller to act on.

        Raises:
            ProtocolError: the frame is malformed or not allowed in this state.
        """
        message = decode_server_message(frame, MAX_MESSAGE_BYTES)
        if message is None:
            return None
        if isinstance(message, Error):
            self.state = State.CLOSING
        elif isinstance(message, Welcome):
            if self.state is not State.WELCOME:
                raise _unexpected("welcome", self.state)
            self.state = State.OPEN
            self.last_acked_seq = message.last_seq
            self.features = frozenset(message.features) & frozenset(AGENT_FEATURES)
            self.max_message_bytes = min(message.max_message_bytes, MAX_MESSAGE_BYTES)
        elif self.state is not State.OPEN:
            raise _unexpected(type(message).__name__.lower(), self.state)
        elif isinstance(message, Ack):
            self.last_acked_seq = max(self.last_acked_seq, message.seq)
        return message


class ServerSession:
    """The server's side of one agent connection.

    The caller looks the token up and the stream in the store; the session only says what may come
    when, and holds the field tables that batches refer to.

    Args:
        max_message_bytes: largest message that is taken.
        reachable: whether others than this machine can reach the server.
    """

    def __init__(
        self, max_message_bytes: int = MAX_MESSAGE_BYTES, *, reachable: bool = False
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self._reachable = reachable
        self.state = State.HELLO
        self.features: frozenset[str] = frozenset()
        self.tables: dict[int, list[Field]] = {}
        self._codes: dict[int, bytes] = {}
        self._next_seq = 1

    def receive(self, frame: bytes | str) -> AgentMessage | None:
        """Take one frame of the agent; ``None`` if it is of a type unknown to this version.

        Raises:
            ProtocolError: malformed, too large, or not allowed in this state.
        """
        message = decode_agent_message(frame, self.max_message_bytes)
        if message is None:
            return None
        if self.state is State.OPEN:
            self._check_open(message)
        elif self.state is State.HELLO and isinstance(message, Hello):
            self._take_hello(message)
        elif (self.state is State.AUTH and isinstance(message, Auth)) or (
            self.state is State.REGISTER and isinstance(message, Register)
        ):
            pass  # the caller answers: authenticated() or welcome()
        else:
            raise _unexpected(type(message).__name__.lower(), self.state)
        return message

    def authenticated(self) -> None:
        """The token is good: a register may follow."""
        self.state = State.REGISTER

    def welcome(self, last_seq: int, software: str = "") -> bytes:
        """Open the stream after ``last_seq``, the highest committed sequence number."""
        self.state = State.OPEN
        self._next_seq = last_seq + 1
        return encode(
            Welcome(
                PROTOCOL_VERSION,
                last_seq,
                list(SERVER_FEATURES),
                software,
                self.max_message_bytes,
                self._reachable,
            )
        )

    def ack(self, seq: int) -> bytes:
        """Frame that says: committed up to ``seq``."""
        return encode(Ack(seq))

    def command(self, command: Command) -> bytes:
        """Frame that asks the agent to run a command."""
        return encode(command)

    def decision(self, decision: Decision) -> bytes:
        """Frame that says what becomes of a command that was prepared."""
        return encode(decision)

    def snapshot_ack(self, ack: SnapshotAck) -> bytes:
        """Frame that says how much of a snapshot is committed, or that it is not wanted."""
        return encode(ack)

    def map_wanted(self, wanted: MapWanted) -> bytes:
        """Frame that asks the agent for its memory map."""
        return encode(wanted)

    def fail(self, error: ProtocolError) -> bytes:
        """Frame that says why the connection ends; nothing may follow."""
        self.state = State.CLOSING
        return encode(Error(error.code, error.message))

    def is_duplicate(self, seq: int) -> bool:
        """Whether ``seq`` was received before; otherwise note it as received."""
        if seq < self._next_seq:
            return True
        self._next_seq = seq + 1
        return False

    def _take_hello(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL_VERSION:
            raise ProtocolError(
                VERSION_MISMATCH,
                f"expected protocol {PROTOCOL_VERSION}, got {hello.protocol}; "
                "install the same vramscope release on both sides",
            )
        self.features = frozenset(hello.features) & frozenset(SERVER_FEATURES)
        self.state = State.AUTH

    def _check_open(self, message: AgentMessage) -> None:
        if isinstance(message, (Hello, Auth, Register)):
            raise _unexpected(type(message).__name__.lower(), self.state)
        if isinstance(message, FieldTable):
            _check_field_table(message)
            if message.table not in self.tables and len(self.tables) >= MAX_TABLES:
                raise ProtocolError(
                    BAD_MESSAGE, f"expected at most {MAX_TABLES} field tables, got one more"
                )
            self.tables[message.table] = message.fields
            self._codes[message.table] = "".join(f.code for f in message.fields).encode()
        elif isinstance(message, Batch):
            self._check_batch(message)
        elif isinstance(message, (SnapshotBegin, SnapshotChunk)):
            _check_snapshot(message)

    def _check_batch(self, batch: Batch) -> None:
        fields = self.tables.get(batch.table)
        if fields is None:
            raise ProtocolError(
                UNEXPECTED_MESSAGE, f"expected field table {batch.table} before its first batch"
            )
        if not 0 < batch.count <= MAX_BATCH_ROWS or batch.first_index < 0:
            raise ProtocolError(
                BAD_MESSAGE,
                f"expected 1 to {MAX_BATCH_ROWS} rows from index 0 up, "
                f"got {batch.count} from {batch.first_index}",
            )
        if holds_columns(batch.columns, self._codes[batch.table], batch.count):
            return
        slices = column_slices(batch.columns, len(fields), batch.count)
        for column, declared in zip(slices, fields, strict=True):
            if column.code != declared.code:
                raise ProtocolError(
                    BAD_MESSAGE,
                    f"expected type {declared.code!r} for {declared.name}, got {column.code!r}",
                )


def _check_field_table(table: FieldTable) -> None:
    names = [field.name for field in table.fields]
    if not 0 < len(names) <= MAX_FIELDS or len(set(names)) != len(names):
        raise ProtocolError(
            BAD_MESSAGE, f"expected 1 to {MAX_FIELDS} different fields, got {len(names)}"
        )
    if not {"time_ns", "step"} <= set(names):
        raise ProtocolError(BAD_MESSAGE, "expected the columns time_ns and step in a field table")


def _check_snapshot(message: SnapshotBegin | SnapshotChunk) -> None:
    if isinstance(message, SnapshotBegin):
        if len(message.steps) > MAX_SNAPSHOT_STEPS:
            raise ProtocolError(
                BAD_MESSAGE,
                f"expected at most {MAX_SNAPSHOT_STEPS} steps, got {len(message.steps)}",
            )
    elif not 0 < len(message.data) <= MAX_SNAPSHOT_CHUNK_BYTES:
        raise ProtocolError(
            BAD_MESSAGE,
            f"expected 1 to {MAX_SNAPSHOT_CHUNK_BYTES} bytes of a snapshot, "
            f"got {len(message.data)}",
        )


def _unexpected(got: str, state: State) -> ProtocolError:
    return ProtocolError(UNEXPECTED_MESSAGE, f"expected {state.value}, got {got}")
