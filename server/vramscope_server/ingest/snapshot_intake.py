"""The pieces of snapshots and reports that come on one connection, beside everything else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from vramscope_protocol.errors import UNEXPECTED_MESSAGE, ProtocolError
from vramscope_protocol.messages import OomBegin, SnapshotAck, SnapshotBegin, SnapshotChunk
from vramscope_server.ingest.connection import AgentConnection
from vramscope_server.store.runs import StreamRecord


class SnapshotSink(Protocol):
    """Stores what comes of snapshots."""

    async def take(
        self, stream: StreamRecord, message: SnapshotBegin | SnapshotChunk
    ) -> SnapshotAck:
        """Store one piece; how much is committed then."""
        ...


class OomSink(Protocol):
    """Stores what comes of reports of running out of memory."""

    async def take(self, stream: StreamRecord, message: OomBegin | SnapshotChunk) -> SnapshotAck:
        """Take one piece; how much is there then."""
        ...


class SnapshotIntake:
    """Takes the pieces of one connection, one after the other.

    A piece is stored by a task of its own: what comes behind it on the connection does not wait.

    Args:
        connection: where the answers go.
        sink: stores the pieces of snapshots.
        ooms: stores those of reports.
    """

    def __init__(self, connection: AgentConnection, sink: SnapshotSink, ooms: OomSink) -> None:
        self._connection = connection
        self._sink = sink
        self._ooms = ooms
        self._is_report = False
        self._task: asyncio.Task[None] | None = None

    def take(self, message: SnapshotBegin | OomBegin | SnapshotChunk) -> None:
        """Store a piece and answer when it is committed.

        Raises:
            ProtocolError: the one before was not answered yet.
        """
        if self._task is not None and not self._task.done():
            raise ProtocolError(
                UNEXPECTED_MESSAGE, "expected one piece of a snapshot at a time, got another one"
            )
        # A chunk is of what was begun last on this connection.
        if not isinstance(message, SnapshotChunk):
            self._is_report = isinstance(message, OomBegin)
        self._task = asyncio.create_task(self._store(message), name="vramscope-snapshot")

    def close(self) -> None:
        """The connection is over: nobody waits for an answer."""
        if self._task is not None:
            self._task.cancel()

    async def _store(self, message: SnapshotBegin | OomBegin | SnapshotChunk) -> None:
        try:
            ack = await self._taken(message)
        except ProtocolError as error:
            self._connection.fail(error)
        else:
            self._connection.snapshot_ack(ack)

    async def _taken(self, message: SnapshotBegin | OomBegin | SnapshotChunk) -> SnapshotAck:
        stream = self._connection.stream
        if isinstance(message, SnapshotBegin):
            return await self._sink.take(stream, message)
        if isinstance(message, OomBegin) or self._is_report:
            return await self._ooms.take(stream, message)
        return await self._sink.take(stream, message)
