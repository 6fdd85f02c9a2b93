"""Takes snapshots in from agents: a beginning, then piece after piece, each committed and acked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from vramscope_protocol.messages import SnapshotAck, SnapshotBegin, SnapshotChunk
from vramscope_server.ingest.message_checks import check_snapshot
from vramscope_server.settings import Limits
from vramscope_server.snapshots.archive import ArchiveError, check
from vramscope_server.snapshots.files import SnapshotFiles
from vramscope_server.snapshots.room import make_room
from vramscope_server.store import snapshots
from vramscope_server.store.database import StoreError
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.snapshots")

_TRIES: Final = 3


class SnapshotReceiver:
    """Stores what agents send. Lives on the event loop; only storing is awaited.

    Args:
        store: where the parts go.
        files: tells everybody what has changed.
        limits: how much is taken.
        clock_ns: when something was received.
    """

    def __init__(
        self,
        store: Store,
        files: SnapshotFiles,
        limits: Limits,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._files = files
        self._limits = limits
        self._clock_ns = clock_ns

    async def take(
        self, stream: StreamRecord, message: SnapshotBegin | SnapshotChunk
    ) -> SnapshotAck:
        """Store what came on a stream; the answer says how much of the snapshot is committed.

        Raises:
            ProtocolError: the message says what cannot be.
        """
        check_snapshot(message)
        for attempt in range(_TRIES):
            try:
                if isinstance(message, SnapshotBegin):
                    return await self._begin(stream, message)
                return await self._append(stream, message)
            except (StoreError, SQLAlchemyError) as error:
                _logger.error("snapshot %s: %s", message.id, error)
                if attempt < _TRIES - 1:
                    await asyncio.sleep(self._limits.snapshot_retry_s)
        return SnapshotAck(message.id, refused="the server's database does not take it")

    async def _begin(self, stream: StreamRecord, message: SnapshotBegin) -> SnapshotAck:
        wanted = self._row(stream, message)
        run_id = stream.run_id

        def begin(connection: Connection) -> tuple[SnapshotAck, list[dict[str, Any]]]:
            known = snapshots.get(connection, message.id)
            if known is not None:
                ack = _go_on(known, wanted)
                if not ack.refused:
                    snapshots.goes_on(connection, message.id, stream.uid)
                return ack, []
            reason, forgotten = make_room(
                connection, run_id, message.wire_bytes, self._limits, self._files.is_connected
            )
            if reason is not None:
                return SnapshotAck(message.id, refused=reason), forgotten
            snapshots.add(connection, wanted)
            return SnapshotAck(message.id, 0), forgotten

        refused = self._too_large(message)
        if refused is not None:
            return SnapshotAck(message.id, refused=refused)
        ack, forgotten = await self._store.write(begin)
        for each in forgotten:
            await self._files.forget_parts(each)
        if ack.refused:
            return ack
        await self._files.changed(message.id)
        if ack.offset == message.wire_bytes:
            # All of it came, but whoever took the last piece had no time to check it.
            known = await self._store.read(lambda c: snapshots.get(c, message.id))
            if known is not None:
                return await self._complete(known)
        return ack

    async def _append(self, stream: StreamRecord, message: SnapshotChunk) -> SnapshotAck:
        run_id, rank = stream.run_id, stream.info.rank

        def append(connection: Connection) -> dict[str, Any] | None:
            known = snapshots.get(connection, message.id)
            if known is None or (known["run"], known["rank"]) != (run_id, rank):
                return None
            snapshots.append(connection, message.id, message.offset, message.data)
            return snapshots.get(connection, message.id)

        known = await self._store.write(append)
        if known is None:
            return SnapshotAck(message.id, refused="it was deleted")
        if known["state"] == snapshots.FAILED:
            return SnapshotAck(message.id, refused=known["reason"])
        received_bytes: int = known["received_bytes"]
        if received_bytes < known["wire_bytes"]:
            if message.offset + len(message.data) > known["wire_bytes"]:
                return await self._fail(known, "more came than was announced")
            self._files.progressed(known)
            return SnapshotAck(message.id, received_bytes)
        return await self._complete(known)

    async def _complete(self, known: dict[str, Any]) -> SnapshotAck:
        identity: str = known["id"]
        if known["state"] != snapshots.COMPLETE:

            def read(connection: Connection) -> str | None:
                try:
                    found = check(snapshots.parts(connection, identity), known["raw_bytes"])
                except ArchiveError as error:
                    return str(error)
                if (found.raw_bytes, found.sha256) != (known["raw_bytes"], known["sha256"]):
                    return "what came is not what was sent"
                return None

            error = await self._store.compute(lambda: self._store.read_now(read))
            if error is not None:
                return await self._fail(known, error)
            await self._store.write(lambda c: snapshots.finish(c, identity, snapshots.COMPLETE))
            await self._files.changed(identity)
        return SnapshotAck(identity, known["wire_bytes"])

    async def _fail(self, known: dict[str, Any], reason: str) -> SnapshotAck:
        identity: str = known["id"]
        await self._store.write(lambda c: snapshots.finish(c, identity, snapshots.FAILED, reason))
        await self._files.forget_parts(known, is_gone=False)
        await self._files.changed(identity)
        return SnapshotAck(identity, refused=reason)

    def _too_large(self, message: SnapshotBegin) -> str | None:
        for what, size_bytes, limit_bytes in (
            ("a pickle", message.raw_bytes, self._limits.snapshot_raw_bytes),
            ("a gzipped pickle", message.wire_bytes, self._limits.snapshot_wire_bytes),
        ):
            if size_bytes > limit_bytes:
                return f"expected {what} of at most {limit_bytes} bytes, got {size_bytes}"
        return None

    def _row(self, stream: StreamRecord, message: SnapshotBegin) -> dict[str, Any]:
        return {
            "id": message.id,
            "run": stream.run_id,
            "rank": stream.info.rank,
            "stream": stream.uid,
            "device": message.device,
            "step": message.step,
            "taken_ns": message.time_ns,
            "received_ns": self._clock_ns(),
            "mode": message.mode,
            "stacks": message.stacks,
            "origin": message.origin,
            "name": "",
            "issued_by": message.issued_by,
            "steps": [list(step) for step in message.steps],
            "raw_bytes": message.raw_bytes,
            "wire_bytes": message.wire_bytes,
            "sha256": message.sha256,
        }


def _go_on(known: dict[str, Any], wanted: dict[str, Any]) -> SnapshotAck:
    """Where an agent goes on that has begun before, perhaps in an earlier life of the server."""
    identity: str = known["id"]
    if any(known[name] != wanted[name] for name in ("run", "rank", "wire_bytes", "sha256")):
        return SnapshotAck(identity, refused="the id belongs to another snapshot")
    if known["state"] == snapshots.FAILED:
        return SnapshotAck(identity, refused=known["reason"])
    return SnapshotAck(identity, known["received_bytes"])
