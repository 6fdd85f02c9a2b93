"""The store as the rest of the server sees it: read in worker threads, write in one thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from vramscope_protocol.messages import BatchKind, Field, Register
from vramscope_server.store import runs
from vramscope_server.store.claims import Seat
from vramscope_server.store.database import Database, StoreError
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.series_reader import Series, SeriesReader
from vramscope_server.store.step_reader import StepReader, Steps
from vramscope_server.store.submission import Submission
from vramscope_server.store.writer import (
    OnCommit,
    OnStreamFailed,
    StoreHealth,
    Writer,
    WriterLimits,
)

T = TypeVar("T")

WRITE_TIMEOUT_S = 15.0
_LOCK_TIMEOUT_S = 1.0
_READERS = 4

_logger = logging.getLogger("vramscope.server.store")


class Store:
    """One open database with its writer. Use :meth:`open`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._series = SeriesReader(database)
        self._steps = StepReader(database)
        self._writer: Writer | None = None
        self._readers = ThreadPoolExecutor(_READERS, "vramscope-reader")
        self._lock = database.server_lock()
        self.is_sole = True
        """Whether no other server uses the same SQLite file; known once started."""

    @classmethod
    def open(cls, url: str) -> Store:
        """Open or create the database; the writer starts with :meth:`start`.

        Raises:
            StoreError: it cannot be opened; the message says why in one line.
        """
        return cls(Database.open(url))

    def start(
        self,
        on_commit: OnCommit,
        on_stream_failed: OnStreamFailed,
        limits: WriterLimits | None = None,
    ) -> None:
        """Start the writer; its callbacks run in the writer's thread.

        Two servers may write to one SQLite file: each stream is stored once, by the server that
        its agent is connected to. What is open in the file belongs to the server that came first.
        """
        # A server that was just told to end needs a moment.
        if self._lock is not None and not self._lock.acquire(_LOCK_TIMEOUT_S):
            self.is_sole = False
            _logger.warning(
                "another server uses %s too; what happens there shows here only after a restart",
                self._database.shown_url,
            )
        self._writer = Writer(self._database, on_commit, on_stream_failed, limits)
        self._writer.start(takes_up_open=self.is_sole)

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Commit what was submitted and end the writer; ``False`` if not all was committed."""
        writer, self._writer = self._writer, None
        return writer is None or writer.stop(timeout_s)

    def close(self) -> None:
        """Stop the writer if it runs, and close the database."""
        self.stop()
        self._readers.shutdown(cancel_futures=True)
        self._database.close()
        if self._lock is not None:
            self._lock.release()

    # ---------------------------------------------------------------------------------- reading

    def read_now(self, function: Callable[[Connection], T]) -> T:
        """Call ``function`` with a connection that sees one committed state; blocking."""
        with self._database.read() as connection:
            return function(connection)

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Like :meth:`read_now`, in a worker thread."""
        return await asyncio.to_thread(self.read_now, function)

    async def compute(self, work: Callable[[], T]) -> T:
        """Call ``work`` in one of a few threads for what may take long: reading many rows, and
        making an answer of them. The quick reads of others do not queue behind it."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def series(
        self,
        run_id: str,
        rank: int,
        fields: Sequence[str],
        start_ns: int | None = None,
        end_ns: int | None = None,
        points: int = 2000,
    ) -> Series:
        """See :meth:`SeriesReader.series`; blocking."""
        return self._series.series(run_id, rank, fields, start_ns, end_ns, points)

    def steps(
        self,
        run_id: str,
        rank: int,
        fields: Sequence[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        points: int | None = None,
        life: int | None = None,
    ) -> Steps:
        """See :meth:`StepReader.steps`; blocking."""
        return self._steps.steps(run_id, rank, fields, start, end, points, life)

    def field_names(self, run_id: str, rank: int, kind: BatchKind = "sample") -> list[Field]:
        """See :meth:`StepReader.field_names`; blocking."""
        return self._steps.field_names(run_id, rank, kind)

    # ---------------------------------------------------------------------------------- writing

    def write_now(self, function: Callable[[Connection], T]) -> T:
        """Call ``function`` in a transaction and commit it; blocking.

        Raises:
            StoreError: the database did not take it.
        """
        writer = self._writer
        try:
            if writer is not None:
                result: T = writer.call(function).result(WRITE_TIMEOUT_S)
                return result
            with self._database.write() as connection:
                return function(connection)
        except FutureTimeoutError:
            raise StoreError("the database does not accept writes in time") from None
        except SQLAlchemyError as error:
            raise _refused(error) from error

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Like :meth:`write_now`, without blocking the event loop."""
        writer = self._writer
        if writer is None:
            return await asyncio.to_thread(self.write_now, function)
        try:
            result: T = await asyncio.wait_for(
                asyncio.wrap_future(writer.call(function)), WRITE_TIMEOUT_S
            )
        except asyncio.TimeoutError:  # not the builtin one before Python 3.11
            raise StoreError("the database does not accept writes in time") from None
        except SQLAlchemyError as error:
            raise _refused(error) from error
        return result

    async def register(
        self, message: Register, now_ns: int, owner: str = "", seat: Seat | None = None
    ) -> StreamRecord:
        """Store run, rank and stream; ``last_seq`` of the answer is what is committed.

        Args:
            message: who registers.
            now_ns: the server's clock.
            owner: whose token it came with.
            seat: who sits on the rank now.

        Raises:
            ProtocolError: the stream belongs to another run or rank, or they to somebody else.
            StoreError: the database did not take it.
        """
        writer = self._writer

        def register(connection: Connection) -> StreamRecord:
            stream = runs.register(connection, message, now_ns, owner, seat)
            if writer is not None:
                stream.epoch = writer.admit()
            return stream

        return await self.write(register)

    def has_failed(self, stream: StreamRecord) -> bool:
        """Whether what comes under this registration is not stored: it has to register again."""
        return self._writer is not None and self._writer.has_failed(stream)

    def submit(self, submission: Submission) -> bool:
        """Queue a message of an agent; ``False`` when the queue is full or the store closing."""
        return self._writer is not None and self._writer.submit(submission)

    @property
    def is_writing(self) -> bool:
        """Whether :meth:`submit` can succeed, now or when there is space."""
        return self._writer is not None and self._writer.is_taking

    def when_space(self, callback: Callable[[], object]) -> None:
        """Call back once, from any thread, when :meth:`submit` is worth another try."""
        if self._writer is None:
            callback()
        else:
            self._writer.when_space(callback)

    def health(self) -> StoreHealth:
        """Whether the store keeps up."""
        if self._writer is None:
            return StoreHealth(False, "the writer is not running", 0, 0, 0, 0.0)
        return self._writer.health()


def _refused(error: SQLAlchemyError) -> StoreError:
    """Without the statement and its values, which the caller of an endpoint must not see."""
    cause = getattr(error, "orig", None) or type(error).__name__
    return StoreError(f"the database did not take a write: {cause}")
