"""What is said on one connection, from the opening frames to whatever ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from vramscope.outbox.losses import TOO_LARGE
from vramscope.outbox.outbox import Outbox
from vramscope.transport.connection import Connection
from vramscope.transport.limits import TransportLimits
from vramscope.transport.snapshot_lane import SnapshotLane
from vramscope_protocol.codec import encode
from vramscope_protocol.errors import BAD_MESSAGE, TIMEOUT, ProtocolError
from vramscope_protocol.messages import (
    Ack,
    AgentStatus,
    Command,
    Decision,
    MapFrame,
    MapWanted,
    ServerMessage,
    SnapshotAck,
    Welcome,
)
from vramscope_protocol.session import AgentSession, State
from vramscope_protocol.version import FEATURE_MAP, FEATURE_OOMS, FEATURE_SNAPSHOTS

_LATE_S: Final = 1.0


class MapFeed(Protocol):
    """What a conversation needs of the memory map."""

    def wanted(self, message: MapWanted) -> None:
        """The server asks for frames."""
        ...

    def next_frame(self, max_bytes: int) -> MapFrame | None:
        """The frame that is due."""
        ...


class Conversation:
    """Sends the outbox over one connection and takes the answers.

    Args:
        session: protocol state of the connection.
        outbox: what to send.
        limits: bounds.
        next_status: the status that is due, if one is; called once a turn.
        on_command: takes a command, the decision on one, or the welcome of who may send them; must
            return quickly.
        on_welcome: called when the server has taken the stream.
        on_progress: called with each acknowledgement.
        map_feed: makes the frames of the memory map for this connection.
        snapshots: what is sent when there is nothing else.
    """

    def __init__(
        self,
        session: AgentSession,
        outbox: Outbox,
        limits: TransportLimits,
        *,
        next_status: Callable[[], AgentStatus | None],
        on_command: Callable[[Command | Decision | Welcome], None],
        on_welcome: Callable[[], None],
        on_progress: Callable[[], None],
        map_feed: MapFeed | None = None,
        snapshots: SnapshotLane | None = None,
    ) -> None:
        self._session = session
        self._outbox = outbox
        self._limits = limits
        self._next_status = next_status
        self._on_command = on_command
        self._on_welcome = on_welcome
        self._on_progress = on_progress
        self._map_feed = map_feed
        self._snapshots = snapshots
        self._sent_tables: set[int] = set()
        self._last_progress_s = 0.0
        self._last_turn_s = 0.0

    def hold(self, connection: Connection, is_over: Callable[[], bool]) -> None:
        """Talk until the connection ends or ``is_over`` says so. Transport thread.

        Raises:
            ProtocolError: the server does not keep to the protocol or its times.
            OSError, WebSocketException, VramscopeError: the connection ended.
        """
        for frame in self._session.opening_frames():
            connection.send(frame)
        self._wait_for_welcome(connection, is_over)
        losses_version = -1
        self._last_progress_s = self._last_turn_s = time.monotonic()
        while not (is_over() or connection.is_closed):
            # Losses first: a goodbye among the entries may be the last thing that is read.
            if self._outbox.losses.version != losses_version:
                losses_version = self._outbox.losses.version
                connection.send(encode(self._outbox.losses.message()))
            is_all_sent = self._send_entries(connection)
            status = self._next_status()
            if status is not None:
                connection.send(encode(status))
            self._send_map(connection)
            if is_all_sent:
                self._send_snapshots(connection)
            connection.check_cost()
            self._forgive_own_delay()
            self._outbox.wakeup.wait(self._time_to_wait_s())
        if connection.error is not None:
            raise connection.error

    def take(self, message: ServerMessage) -> None:
        """Act on a message of the server. Receiver thread.

        Raises:
            ProtocolError: it acknowledges what was never sent.
        """
        if isinstance(message, Ack):
            self._take_ack(message.seq)
        elif isinstance(message, (Command, Decision)):
            self._on_command(message)
        elif isinstance(message, MapWanted):
            if self._map_feed is not None:
                self._map_feed.wanted(message)
                self._outbox.wakeup.set()
        elif isinstance(message, SnapshotAck):
            if self._snapshots is not None:
                self._snapshots.acked(self, message)
                self._outbox.wakeup.set()
        elif isinstance(message, Welcome):
            self._on_command(message)  # before any command of this server
            self._take_ack(message.last_seq)
            if self._snapshots is not None:
                self._snapshots.claim(self, self._outbox.wakeup.set)
            self._on_welcome()
            self._outbox.wakeup.set()

    def _take_ack(self, seq: int) -> None:
        was_full = self._outbox.unacked_bytes >= self._limits.window_bytes
        if not self._outbox.acked(seq):
            raise ProtocolError(
                BAD_MESSAGE, f"expected the number of a message that was sent, got {seq}"
            )
        self._last_progress_s = time.monotonic()
        self._on_progress()
        if was_full:
            self._outbox.wakeup.set()

    def _wait_for_welcome(self, connection: Connection, is_over: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + self._limits.welcome_timeout_s
        while self._session.state is State.WELCOME and not (is_over() or connection.is_closed):
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                raise ProtocolError(
                    TIMEOUT,
                    f"expected a welcome within {self._limits.welcome_timeout_s:g} s, got none",
                )
            connection.check_cost()
            self._outbox.wakeup.wait(remaining_s)

    def _send_entries(self, connection: Connection) -> bool:
        """Send what the window takes; whether nothing is left to send."""
        outbox = self._outbox
        while outbox.unacked_bytes < self._limits.window_bytes and not connection.is_closed:
            if outbox.unacked_bytes == 0:
                self._last_progress_s = time.monotonic()
            entry = outbox.next_unsent()
            if entry is None:
                return True
            if len(entry.frame) > self._session.max_message_bytes:
                outbox.drop_sent(entry, TOO_LARGE)
                continue
            table = outbox.tables.get(entry.table)
            if table is not None and table.table not in self._sent_tables:
                connection.send(encode(table))
                self._sent_tables.add(table.table)
            connection.send(entry.frame)
        return False

    def _send_snapshots(self, connection: Connection) -> None:
        snapshots = self._snapshots
        if snapshots is None or snapshots.is_empty:
            return
        if FEATURE_SNAPSHOTS not in self._session.features:
            snapshots.refuse_all("this server takes no snapshots")
            return
        if FEATURE_OOMS not in self._session.features:
            snapshots.refuse_reports("this server takes no reports of running out of memory")
        message = snapshots.next_message(self, self._session.max_message_bytes)
        if message is not None:
            connection.send(encode(message))

    def _send_map(self, connection: Connection) -> None:
        if self._map_feed is None or FEATURE_MAP not in self._session.features:
            return
        frame = self._map_feed.next_frame(self._session.max_message_bytes)
        if frame is not None:
            connection.send(encode(frame))

    def _forgive_own_delay(self) -> None:
        """After a stop of the process, or of all its Python, an answer may lie unread."""
        now_s = time.monotonic()
        if now_s - self._last_turn_s > self._limits.idle_wait_s + _LATE_S:
            self._last_progress_s = now_s
        self._last_turn_s = now_s

    def _time_to_wait_s(self) -> float:
        """Time to the next thing to do; raises when the server owes an acknowledgement."""
        if self._outbox.unacked_bytes == 0:
            return self._limits.idle_wait_s
        overdue_s = time.monotonic() - self._last_progress_s - self._limits.ack_timeout_s
        if overdue_s >= 0:
            raise ProtocolError(
                TIMEOUT,
                f"expected an acknowledgement within {self._limits.ack_timeout_s:g} s, got none",
            )
        return min(self._limits.idle_wait_s, -overdue_s)
