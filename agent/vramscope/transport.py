"""The thread that brings the outbox to the server: connect, send, resend, wait, try again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from websockets.exceptions import ConnectionClosed

from vramscope._version import __version__
from vramscope.address import ServerAddress
from vramscope.backoff import Backoff
from vramscope.connection import Connection, ConnectionLimits
from vramscope.failure import EXPECTED_ERRORS, Failure, failure_of
from vramscope.guard import guarded
from vramscope.losses import TOO_LARGE
from vramscope.notices import Notices
from vramscope.outbox import Outbox
from vramscope_protocol.codec import encode
from vramscope_protocol.errors import BAD_MESSAGE, TIMEOUT, ProtocolError
from vramscope_protocol.messages import (
    Ack,
    AgentStatus,
    Command,
    Register,
    ServerMessage,
    Welcome,
)
from vramscope_protocol.session import AgentSession, State

NOTE: Final = "connection"


class Target(Struct, frozen=True):
    """Where to connect, and the secret of that server."""

    address: ServerAddress
    token: str


class TransportLimits(Struct, frozen=True):
    """Bounds of the conversation with the server."""

    window_bytes: int = 2 << 20
    """Bytes sent and not acknowledged: a server that accepts and never acknowledges holds no
    more of the outbox than this."""
    welcome_timeout_s: float = 10.0
    ack_timeout_s: float = 30.0
    permanent_retry_s: float = 60.0
    settled_after_s: float = 10.0
    """A connection that lasted so long makes the next delays short again."""
    idle_wait_s: float = 5.0
    connection: ConnectionLimits = ConnectionLimits()


class Transport:
    """Owns the transport thread.

    Args:
        outbox: what to send.
        target: says where to, on each attempt; called on the transport thread. ``None``: nowhere
            yet, try later.
        register: says who is sending, on each connection.
        on_command: called on the receiver thread; must return quickly.
        notices: where failures are said and noted.
        on_welcome: called on the receiver thread when a server has taken the stream.
        limits: bounds.
        backoff: delays between attempts.
    """

    def __init__(
        self,
        outbox: Outbox,
        target: Callable[[], Target | None],
        register: Callable[[], Register],
        on_command: Callable[[Command], None],
        notices: Notices,
        on_welcome: Callable[[Target], None] | None = None,
        limits: TransportLimits | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._outbox = outbox
        self._target = target
        self._register = register
        self._on_command = on_command
        self._notices = notices
        self._on_welcome = on_welcome
        self._limits = limits or TransportLimits()
        self._backoff = backoff or Backoff()
        self._thread = threading.Thread(target=self._run, name="vramscope-transport", daemon=True)
        self._closing = False
        self._stopping = False
        self._hurry = threading.Event()
        self._progress = threading.Event()
        self._connection: Connection | None = None
        self._status: AgentStatus | None = None
        self._attempts_failed = 0
        self._violations = 0
        self._last_progress_s = 0.0
        self._own_cpu_ns = 0
        self._past_cpu_ns = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer_status(self, status: AgentStatus) -> None:
        """Send this with the next message, unless a newer one comes first. Any thread."""
        self._status = status

    def cpu_ns(self) -> int:
        """CPU time of the threads that send and receive."""
        connection = self._connection
        present_ns = connection.cpu_ns() if connection is not None else 0
        return self._own_cpu_ns + self._past_cpu_ns + present_ns

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything put so far is acknowledged.

        Returns:
            Whether it is. ``False`` before the time is over when no server can be reached.
        """
        deadline_s = time.monotonic() + timeout_s
        failed_before = self._attempts_failed
        self._closing = True
        self._hurry.set()
        self._outbox.wakeup.set()
        while not self._outbox.is_empty:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0 or not self._thread.is_alive():
                return False
            if self._connection is None and self._attempts_failed > failed_before:
                return False
            self._progress.wait(remaining_s)
            self._progress.clear()
        return True

    def stop(self, timeout_s: float) -> None:
        """End the connection and the thread; whatever is unsent stays in the outbox."""
        deadline_s = time.monotonic() + timeout_s
        self._stopping = True
        self._hurry.set()
        self._outbox.wakeup.set()
        if self._thread.ident is None:
            return
        connection = self._connection
        if connection is not None and not self._outbox.is_empty:
            connection.abort()
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        connection = self._connection
        if self._thread.is_alive() and connection is not None:
            connection.abort()

    def forget_after_fork(self) -> None:
        """In a forked child: the thread is gone; drop its socket without a word to the server."""
        if self._connection is not None:
            self._connection.forget_after_fork()

    # ------------------------------------------------------------------- on the transport thread

    def _run(self) -> None:
        while not self._stopping:
            with guarded("transport"):
                failure = self._attempt()
                if failure is not None:
                    self._report(failure)
                self._own_cpu_ns = time.thread_time_ns()
                self._attempts_failed += 1
                self._progress.set()
                self._wait(failure)
                continue
            # A bug of ours, swallowed by the guard: not in a busy loop.
            self._hurry.wait(self._limits.permanent_retry_s)

    def _wait(self, failure: Failure | None) -> None:
        delay_s = self._backoff.next_s()
        if failure is not None and failure.is_permanent:
            delay_s = self._limits.permanent_retry_s
        if not self._stopping:
            self._hurry.wait(delay_s)
            # A flush asks for one attempt at once, not for a busy loop of attempts.
            self._hurry.clear()

    def _attempt(self) -> Failure | None:
        """One connection from start to end; what ended it, if it failed."""
        target = self._target()
        if target is None:
            return None
        session = AgentSession(target.token, self._register(), f"vramscope/{__version__}")
        try:
            connection = Connection(
                target.address,
                session,
                lambda message: self._take(message, target),
                self._outbox.wakeup.set,
                self._limits.connection,
            )
            started_s = time.monotonic()
            try:
                self._connection = connection
                with connection:
                    self._converse(connection, session)
            except EXPECTED_ERRORS as error:
                # A failed write only says that the connection is over; the receiver knows why.
                if isinstance(error, ConnectionClosed) and connection.error is not None:
                    raise connection.error from None
                raise
            finally:
                # Not at the welcome: a server that welcomes and then fails is not of use.
                if time.monotonic() - started_s > self._limits.settled_after_s:
                    self._backoff.reset()
                self._past_cpu_ns += connection.cpu_ns()
                self._connection = None
                self._outbox.rewind()
        except EXPECTED_ERRORS as error:
            return None if self._stopping else failure_of(error, target.address)
        return None

    def _converse(self, connection: Connection, session: AgentSession) -> None:
        for frame in session.opening_frames():
            connection.send(frame)
        self._wait_for_welcome(connection, session)
        sent_tables: set[int] = set()
        losses_version = -1
        self._last_progress_s = time.monotonic()
        while not self._stopping and not connection.is_closed:
            if self._outbox.losses.version != losses_version:
                losses_version = self._outbox.losses.version
                connection.send(encode(self._outbox.losses.message()))
            self._send_entries(connection, session, sent_tables)
            status, self._status = self._status, None
            if status is not None:
                connection.send(encode(status))
            self._own_cpu_ns = time.thread_time_ns()
            self._outbox.wakeup.wait(self._time_to_wait_s())
        if connection.error is not None:
            raise connection.error

    def _wait_for_welcome(self, connection: Connection, session: AgentSession) -> None:
        deadline_s = time.monotonic() + self._limits.welcome_timeout_s
        while session.state is State.WELCOME and not connection.is_closed and not self._stopping:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                raise ProtocolError(
                    TIMEOUT,
                    f"expected a welcome within {self._limits.welcome_timeout_s:g} s, got none",
                )
            self._outbox.wakeup.wait(remaining_s)
        if connection.error is not None:
            raise connection.error

    def _send_entries(
        self, connection: Connection, session: AgentSession, sent_tables: set[int]
    ) -> None:
        outbox = self._outbox
        while outbox.unacked_bytes < self._limits.window_bytes and not connection.is_closed:
            if outbox.unacked_bytes == 0:
                self._last_progress_s = time.monotonic()
            entry = outbox.next_unsent()
            if entry is None:
                return
            table = outbox.tables.get(entry.table)
            if len(entry.frame) > session.max_message_bytes:
                outbox.drop_sent(entry, TOO_LARGE)
                continue
            if table is not None and table.table not in sent_tables:
                connection.send(encode(table))
                sent_tables.add(table.table)
            connection.send(entry.frame)

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

    def _report(self, failure: Failure) -> None:
        if failure.is_violation:
            self._violations += 1
            self._notices.note(NOTE, f"{failure.text} ({self._violations} times)")
        # While closing, the agent says itself what was not delivered.
        if not self._closing:
            self._notices.say(failure.key, f"{failure.text}; the job goes on, trying again")

    # -------------------------------------------------------------------- on the receiver thread

    def _take(self, message: ServerMessage, target: Target) -> None:
        if isinstance(message, Ack):
            self._take_ack(message.seq)
        elif isinstance(message, Command):
            self._on_command(message)
        elif isinstance(message, Welcome):
            self._take_ack(message.last_seq)
            if self._on_welcome is not None:
                self._on_welcome(target)
            self._outbox.wakeup.set()

    def _take_ack(self, seq: int) -> None:
        was_full = self._outbox.unacked_bytes >= self._limits.window_bytes
        if not self._outbox.acked(seq):
            raise ProtocolError(
                BAD_MESSAGE, f"expected the number of a message that was sent, got {seq}"
            )
        self._last_progress_s = time.monotonic()
        self._progress.set()
        if was_full:
            self._outbox.wakeup.set()
