"""The one thread that writes: takes messages in order, commits them together, then acks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from vramscope_server.store.commit import StreamConflict, write_streams
from vramscope_server.store.database import Database
from vramscope_server.store.field_tables import FieldTables
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.stream_state import StreamState
from vramscope_server.store.stream_states import StreamStates
from vramscope_server.store.submission import Submission
from vramscope_server.store.submission_queue import Call, SubmissionQueue

Acks = dict[str, int]
OnCommit = Callable[[Acks], None]
OnStreamFailed = Callable[[str, str], None]

_STREAM_ERRORS: Final = (SQLAlchemyError, StreamConflict, ValueError, OverflowError, TypeError)
"""What one stream's content can cause. The database's own troubles are OperationalError."""

_logger = logging.getLogger("vramscope.server.writer")


@dataclass(frozen=True)
class WriterLimits:
    """Bounds of the writer; any of them may be 1 in a test."""

    commit_interval_s: float = 1.0
    goodbye_interval_s: float = 0.02
    """The same once a stream has ended: its process waits for the ack before it exits, and the
    other ranks say goodbye in the same moment."""
    commit_bytes: int = 8 << 20
    """Commit sooner when this much is pending."""
    queue_bytes: int = 64 << 20
    """Submissions beyond this are refused until something is committed: the sender waits."""
    queue_messages: int = 65_536
    retry_s: float = 0.5
    idle_seal_s: float = 120.0
    """A stream silent for this long gets its open chunks sealed and leaves memory."""


@dataclass(frozen=True)
class StoreHealth:
    """Whether the store keeps up; ``error`` is empty when it does."""

    ok: bool
    error: str
    pending_messages: int
    pending_bytes: int
    last_commit_ns: int
    oldest_pending_s: float


class _GaveUp(Exception):
    """The server ends while the database does not accept writes."""


class Writer:
    """Owns the writing connection. Everything is stored exactly once, in the order it came.

    Args:
        on_commit: called in the writer's thread after each commit, with the highest committed
            sequence number of each stream that moved on.
        on_stream_failed: called when what a stream sent cannot be stored (its uid, why); nothing
            of it was acked and its state in memory is forgotten.
    """

    def __init__(
        self,
        database: Database,
        on_commit: OnCommit,
        on_stream_failed: OnStreamFailed,
        limits: WriterLimits | None = None,
    ) -> None:
        self._database = database
        self._on_commit = on_commit
        self._on_stream_failed = on_stream_failed
        self._limits = limits or WriterLimits()
        self._field_tables = FieldTables()
        self._streams = StreamStates(database, self._limits.idle_seal_s)
        self._queue = SubmissionQueue(
            self._limits.queue_bytes, self._limits.queue_messages, self._limits.commit_bytes
        )
        self._give_up_at = float("inf")
        self._error = ""
        self._last_commit_ns = 0
        self._uncommitted: list[Submission] = []
        self._uncommitted_bytes = 0
        self._thread = threading.Thread(target=self._run, name="vramscope-writer", daemon=True)

    def start(self, *, takes_up_open: bool = True) -> None:
        """Load what a killed server left open, then take submissions."""
        if takes_up_open:
            self._streams.load_open()
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Commit everything that was submitted, then end; ``False`` if that took too long."""
        self._give_up_at = time.monotonic() + timeout_s
        self._queue.close()
        self._thread.join(timeout_s + 1.0)
        return not self._thread.is_alive() and not self._uncommitted

    def submit(self, submission: Submission) -> bool:
        """Queue a message; ``False`` when the queue is full: wait for :meth:`when_space`."""
        return self._queue.put(submission)

    @property
    def is_taking(self) -> bool:
        """Whether submissions are taken, now or when there is space."""
        return not self._queue.closed

    def when_space(self, callback: Callable[[], object]) -> None:
        """Call back once (from the writer's thread, or at once) when there is space again."""
        self._queue.when_space(callback)

    def call(self, function: Callable[[Connection], Any]) -> Future[Any]:
        """Run ``function`` in a transaction of its own between two commits of messages."""
        return self._queue.put_call(function)

    def admit(self) -> int:
        """Epoch of a stream that registers; only within :meth:`call`."""
        return self._streams.admit()

    def has_failed(self, stream: StreamRecord) -> bool:
        """See :meth:`StreamStates.has_failed`."""
        return self._streams.has_failed(stream.uid, stream.epoch)

    def health(self) -> StoreHealth:
        """Whether commits succeed, and what waits for one."""
        error = self._error
        if not error and self._thread.ident is not None and not self._thread.is_alive():
            error = "the writer has ended"
        return StoreHealth(
            not error,
            error,
            self._queue.pending_messages,
            self._queue.pending_bytes,
            self._last_commit_ns,
            self._queue.oldest_pending_s(),
        )

    # ------------------------------------------------------------------ the writer's thread

    def _run(self) -> None:
        try:
            commit_at = float("inf")
            while True:
                # Awake now and then without a message too, to look for idle streams.
                wake_at = time.monotonic() + self._limits.idle_seal_s / 4
                item = self._queue.take(min(commit_at, wake_at))
                if isinstance(item, Call):
                    self._execute(item)
                elif item is not None:
                    commit_at = min(commit_at, time.monotonic() + self._interval_s(item))
                    self._absorb(item)
                elif self._queue.closed:
                    break
                if self._is_commit_due(commit_at):
                    self._streams.seal_idle()
                    self._commit()
                    commit_at = float("inf")
            self._commit()
        except _GaveUp:
            _logger.error("gave up on %d messages that were not acked", len(self._uncommitted))
        finally:
            self._queue.close()
            self._queue.fail_calls()

    def _interval_s(self, submission: Submission) -> float:
        if submission.is_urgent:
            return min(self._limits.goodbye_interval_s, self._limits.commit_interval_s)
        return self._limits.commit_interval_s

    def _is_commit_due(self, commit_at: float) -> bool:
        if self._uncommitted_bytes >= self._limits.commit_bytes:
            return True
        if self._queue.has_items:
            return False  # it came before the commit was due: it costs least in this one
        return time.monotonic() >= commit_at or self._streams.has_idle()

    def _absorb(self, submission: Submission) -> None:
        self._uncommitted.append(submission)
        self._uncommitted_bytes += submission.size_bytes
        self._retry(lambda: self._absorb_or_fail(submission))

    def _absorb_or_fail(self, submission: Submission) -> None:
        try:
            self._streams.absorb(submission)
        except OperationalError:
            raise
        except _STREAM_ERRORS as error:
            self._fail_stream(submission.stream, error)

    def _commit(self) -> None:
        """Commit until it succeeds; nothing is acked before, and nothing more is taken in."""
        states = self._streams.dirty()
        for state in states:
            state.prepare()
        if states:
            self._retry(lambda: self._commit_all(states))
        for state in states:
            if state.dirty:
                self._streams.note_committed(state)
        self._finish_commit(bool(states))

    def _commit_all(self, states: list[StreamState]) -> None:
        try:
            self._write([state for state in states if state.dirty])
        except OperationalError:
            raise
        except _STREAM_ERRORS:
            # One stream must not keep the others from being stored: find it.
            for state in states:
                if state.dirty:
                    self._commit_alone(state)

    def _commit_alone(self, state: StreamState) -> None:
        try:
            self._write([state])
        except OperationalError:
            raise
        except _STREAM_ERRORS as error:
            self._fail_stream(state.uid, error)
        else:
            self._streams.note_committed(state)

    def _fail_stream(self, uid: str, error: Exception) -> None:
        """Forget what is not committed of a stream: its agent still has it, and is told why."""
        self._streams.fail(uid)
        cause = getattr(error, "orig", None) or error
        _logger.error("stream %s cannot be stored: %s: %s", uid, type(cause).__name__, cause)
        self._on_stream_failed(uid, f"cannot be stored ({type(error).__name__})")

    def _write(self, states: list[StreamState]) -> None:
        try:
            with self._database.write() as connection:
                write_streams(connection, states, self._field_tables)
        except BaseException:
            self._field_tables.forget_unconfirmed()
            raise
        self._field_tables.confirm()

    def _finish_commit(self, wrote: bool) -> None:
        acks = self._streams.take_acks()
        done_bytes, done_messages = self._uncommitted_bytes, len(self._uncommitted)
        self._uncommitted = []
        self._uncommitted_bytes = 0
        if wrote:
            self._last_commit_ns = time.time_ns()
        self._queue.committed(done_bytes, done_messages)
        if acks:
            self._on_commit(acks)

    def _execute(self, call: Call) -> None:
        if not call.future.set_running_or_notify_cancel():
            return
        try:
            with self._database.write() as connection:
                result = call.function(connection)
        except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to the caller
            call.future.set_exception(error)
        else:
            call.future.set_result(result)

    def _retry(self, work: Callable[[], None]) -> None:
        """Repeat while the database is locked, full or away.

        Raises:
            _GaveUp: the end came first. Nothing may be taken in after that: an ack of what comes
                later would count for what is given up here.
        """
        while True:
            try:
                work()
            except OperationalError as error:
                self._note_error(f"the database does not accept writes: {error.orig}")
                if time.monotonic() >= self._give_up_at:
                    raise _GaveUp from error
                time.sleep(self._limits.retry_s)
            else:
                self._note_error("")
                return

    def _note_error(self, error: str) -> None:
        if error and error != self._error:
            _logger.error("%s; nothing is acked until it does", error)
        elif self._error and not error:
            _logger.warning("the database accepts writes again")
        self._error = error
