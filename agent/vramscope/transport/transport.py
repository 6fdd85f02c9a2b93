"""The thread that brings the outbox to the server: connect, send, resend, wait, try again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from websockets.exceptions import ConnectionClosed

from vramscope._version import __version__
from vramscope.guard import guarded
from vramscope.notices import Notices
from vramscope.outbox.outbox import Outbox
from vramscope.transport.address import ServerAddress
from vramscope.transport.backoff import Backoff
from vramscope.transport.connection import Connection
from vramscope.transport.conversation import Conversation, MapFeed
from vramscope.transport.failure import CONNECT_ERRORS, CONVERSATION_ERRORS, Failure, failure_of
from vramscope.transport.limits import TransportLimits
from vramscope.transport.snapshot_lane import SnapshotLane
from vramscope.transport.status_news import StatusNews
from vramscope_protocol.messages import AgentStatus, Command, Decision, Register, Welcome
from vramscope_protocol.session import AgentSession

NOTE: Final = "connection"


class Target(Struct, frozen=True):
    """Where to connect, and the secret of that server."""

    address: ServerAddress
    token: str


class Transport:
    """Owns the transport thread.

    Args:
        outbox: what to send.
        target: says where to, on each attempt; called on the transport thread. ``None``: nowhere
            yet, try later.
        register: says who is sending, on each connection.
        on_command: takes a command, the decision on one, or the welcome of who may send them;
            called on the receiver thread, must return quickly.
        notices: where failures are said and noted.
        on_welcome: called on the receiver thread when a server has taken the stream.
        limits: bounds.
        backoff: delays between attempts.
        open_map: makes the feed of memory map frames of one connection.
        snapshots: what is sent when there is nothing else.
    """

    def __init__(
        self,
        outbox: Outbox,
        target: Callable[[], Target | None],
        register: Callable[[], Register],
        on_command: Callable[[Command | Decision | Welcome], None],
        notices: Notices,
        on_welcome: Callable[[Target], None] | None = None,
        limits: TransportLimits | None = None,
        backoff: Backoff | None = None,
        open_map: Callable[[], MapFeed] | None = None,
        snapshots: SnapshotLane | None = None,
    ) -> None:
        self._outbox = outbox
        self._target = target
        self._register = register
        self._on_command = on_command
        self._notices = notices
        self._on_welcome = on_welcome
        self._limits = limits or TransportLimits()
        self._backoff = backoff or Backoff()
        self._open_map = open_map
        self._snapshots = snapshots
        self._thread = threading.Thread(target=self._run, name="vramscope-transport", daemon=True)
        self._closing = False
        self._renewing = False
        self._stopping = False
        self._hurry = threading.Event()
        self._progress = threading.Event()
        self._connection: Connection | None = None
        self._status: AgentStatus | None = None
        self._news = StatusNews()
        self._attempts_failed = 0
        self._violations = 0
        self._own_cpu_ns = 0
        self._past_cpu_ns = 0
        self._past_sent_bytes = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer_status(self, status: AgentStatus) -> None:
        """Send this with the next rows if it tells something and none is newer. Any thread."""
        self._status = status

    def renew(self) -> None:
        """Connect anew, to register again: what was told about this process has changed."""
        self._renewing = True
        self._outbox.wakeup.set()

    def cpu_ns(self) -> int:
        """CPU time of the threads that send and receive."""
        connection = self._connection
        present_ns = connection.cpu_ns() if connection is not None else 0
        return self._own_cpu_ns + self._past_cpu_ns + present_ns

    def sent_bytes(self) -> int:
        """Bytes of the messages that were sent, on all connections so far."""
        connection = self._connection
        return self._past_sent_bytes + (connection.sent_bytes if connection is not None else 0)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

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
                elif self._renewing:
                    continue
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
        self._renewing = False
        self._news = StatusNews()
        target = self._target()
        if target is None:
            return None
        session = AgentSession(target.token, self._register(), f"vramscope/{__version__}")
        conversation = Conversation(
            session,
            self._outbox,
            self._limits,
            next_status=self._next_status,
            on_command=self._on_command,
            on_welcome=lambda: self._welcomed(target),
            on_progress=self._progress.set,
            map_feed=None if self._open_map is None else self._open_map(),
            snapshots=self._snapshots,
        )
        try:
            connection = Connection(
                target.address,
                session,
                conversation.take,
                self._outbox.wakeup.set,
                self._limits.connection,
            )
        except CONNECT_ERRORS as error:
            return None if self._stopping else failure_of(error, target.address)
        ended_by = self._hold(connection, conversation)
        return None if self._stopping or ended_by is None else failure_of(ended_by, target.address)

    def _hold(self, connection: Connection, conversation: Conversation) -> BaseException | None:
        """Talk until the connection is over, and tell why, if that was not our wish."""
        started_s = time.monotonic()
        self._connection = connection
        try:
            with connection:
                conversation.hold(connection, self._is_over)
        except CONVERSATION_ERRORS as error:
            # A failed write only says that the connection is over; the receiver knows why.
            if isinstance(error, ConnectionClosed) and connection.error is not None:
                return connection.error
            return error
        finally:
            # Not at the welcome: a server that welcomes and then fails is not of use.
            if time.monotonic() - started_s > self._limits.settled_after_s:
                self._backoff.reset()
            self._past_cpu_ns += connection.cpu_ns()
            self._past_sent_bytes += connection.sent_bytes
            self._connection = None
            self._outbox.rewind()
        return None

    def _is_over(self) -> bool:
        return self._stopping or self._renewing

    def _next_status(self) -> AgentStatus | None:
        self._own_cpu_ns = time.thread_time_ns()
        status, self._status = self._status, None
        is_news = status is not None and self._news.is_news(status, time.monotonic())
        return status if is_news else None

    def _welcomed(self, target: Target) -> None:
        if self._on_welcome is not None:
            self._on_welcome(target)

    def _report(self, failure: Failure) -> None:
        if failure.is_violation:
            self._violations += 1
            self._notices.note(NOTE, f"{failure.text} ({self._violations} times)")
        # While closing, the agent says itself what was not delivered.
        if not self._closing:
            self._notices.say(failure.key, f"{failure.text}; the job goes on, trying again")
