"""The pieces of snapshots that come on one connection, stored beside everything else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from vramscope_protocol.errors import UNEXPECTED_MESSAGE, ProtocolError
from vramscope_protocol.messages import SnapshotAck, SnapshotBegin, SnapshotChunk
from vramscope_server.ingest.connection import AgentConnection
from vramscope_server.store.runs import StreamRecord


class SnapshotSink(Protocol):
    """Stores what comes of snapshots."""

    async def take(
        self, stream: StreamRecord, message: SnapshotBegin | SnapshotChunk
    ) -> SnapshotAck:
        """Store one piece; how much is committed then."""
        ...


class SnapshotIntake:
    """Takes the pieces of one connection, one after the other.

    A piece is stored by a task of its own: what comes behind it on the connection does not wait.

    Args:
        connection: where the answers go.
        sink: stores the pieces.
    """

    def __init__(self, connection: AgentConnection, sink: SnapshotSink) -> None:
        self._connection = connection
        self._sink = sink
        self._task: asyncio.Task[None] | None = None

    def take(self, message: SnapshotBegin | SnapshotChunk) -> None:
        """Store a piece and answer when it is committed.

        Raises:
            ProtocolError: the one before was not answered yet.
        """
        if self._task is not None and not self._task.done():
            raise ProtocolError(
                UNEXPECTED_MESSAGE, "expected one piece of a snapshot at a time, got another one"
            )
        self._task = asyncio.create_task(self._store(message), name="vramscope-snapshot")

    def close(self) -> None:
        """The connection is over: nobody waits for an answer."""
        if self._task is not None:
            self._task.cancel()

    async def _store(self, message: SnapshotBegin | SnapshotChunk) -> None:
        try:
            ack = await self._sink.take(self._connection.stream, message)
        except ProtocolError as error:
            self._connection.fail(error)
        else:
            self._connection.snapshot_ack(ack)
