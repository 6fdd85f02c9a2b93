"""The stored snapshots as the rest of the server sees them: looked up, opened, put in, deleted."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Generator
from typing import Any, BinaryIO, Final, Protocol, cast

from sqlalchemy import Connection

from vramscope_analysis.snapshot import SnapshotError, read_snapshot
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, NOT_FOUND, VramscopeError
from vramscope_server.settings import Limits
from vramscope_server.snapshots import archive
from vramscope_server.snapshots.archive import ArchiveError
from vramscope_server.snapshots.room import IsConnected, is_abandoned, make_room
from vramscope_server.store import snapshots
from vramscope_server.store.store import Store

_MOST_LISTED: Final = 1000
_TOLD_EVERY_BYTES: Final = 4 << 20

Snapshot = dict[str, Any]


class SnapshotAudience(Protocol):
    """Who is told of snapshots that come, change or go."""

    def publish_snapshot(self, run_id: str, snapshot: Snapshot) -> None:
        """Hand the present state of a snapshot on."""
        ...


class SnapshotFiles:
    """Stored snapshots.

    Args:
        store: where they are.
        audience: told of changes.
        is_connected: whether a stream is there, on which the rest of one could come.
        limits: how much may be put in.
        clock_ns: when something was put in.
    """

    def __init__(
        self,
        store: Store,
        audience: SnapshotAudience,
        is_connected: IsConnected,
        limits: Limits,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.is_connected = is_connected
        self._store = store
        self._audience = audience
        self._limits = limits
        self._clock_ns = clock_ns

    async def start(self) -> None:
        """Delete what a server that was killed has left of deleted snapshots."""
        for identity in await self._store.read(snapshots.orphans):
            await self._remove_parts(identity)

    async def of_run(self, run_id: str) -> list[Snapshot]:
        """Snapshots of a run, the latest first."""
        found = await self._store.read(lambda c: snapshots.of_run(c, run_id, _MOST_LISTED))
        return [self._shown(each) for each in found]

    async def get(self, identity: str) -> Snapshot:
        """One snapshot.

        Raises:
            VramscopeError: ``not_found``.
        """
        return self._shown(await self._store.read(lambda c: _require(c, identity)))

    async def run_of(self, identity: str) -> str | None:
        """Id of the run that it belongs to; ``None`` for one of no run.

        Raises:
            VramscopeError: ``not_found``.
        """
        run_id: str | None = (await self.get(identity))["run"]
        return run_id

    def open_now(self, identity: str) -> BinaryIO:
        """The gzipped pickle in a file of its own, which has no name; blocking. Close it.

        Raises:
            VramscopeError: ``not_found``, or ``conflict`` for one that is not complete.
            OSError: no room for the file.
        """
        named = tempfile.TemporaryFile(prefix="vramscope-")  # noqa: SIM115  # the caller closes it
        file = cast("BinaryIO", named)
        try:
            self._store.read_now(lambda c: _copy(c, identity, file))
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def unpacked(self, identity: str, max_bytes: int) -> Generator[bytes]:
        """The pickle, in pieces; blocking. Each piece is read by itself, so that a slow reader
        holds nothing of the database."""
        return archive.unpack(self._parts(identity), max_bytes)

    async def put(
        self, file: BinaryIO, *, run_id: str | None, rank: int | None, name: str, who: str
    ) -> Snapshot:
        """Store a snapshot that a person has, gzipped or not. The file is read from its start.

        Raises:
            VramscopeError: ``bad_request`` for what is not taken, ``conflict`` without room.
        """
        with tempfile.TemporaryFile(prefix="vramscope-") as packed:
            target = cast("BinaryIO", packed)
            unpacked = await self._store.compute(lambda: self._checked(file, target, name))
            wire_bytes = target.seek(0, os.SEEK_END)
            target.seek(0)
            row: dict[str, Any] = self._row(run_id, rank, name, who) | {
                "raw_bytes": unpacked.raw_bytes,
                "sha256": unpacked.sha256,
                "wire_bytes": wire_bytes,
            }
            await self._add(row)
            start = 0
            for part in archive.pieces(target):
                await self._append(row["id"], start, part)
                start += len(part)
        identity: str = row["id"]
        await self._store.write(lambda c: snapshots.finish(c, identity, snapshots.COMPLETE))
        await self.changed(identity)
        return await self.get(identity)

    async def delete(self, identity: str) -> Snapshot:
        """Delete a snapshot, also one that is still coming.

        Raises:
            VramscopeError: ``not_found``.
        """
        snapshot = await self.get(identity)
        await self._store.write(lambda c: snapshots.remove(c, identity))
        await self.forget_parts(snapshot)
        return snapshot

    async def forget_parts(self, snapshot: Snapshot, *, is_gone: bool = True) -> None:
        """Delete the parts, and tell that the snapshot is gone, if it is."""
        if is_gone:
            self._publish({**snapshot, "state": "deleted"})
        await self._remove_parts(snapshot["id"])

    async def changed(self, identity: str) -> None:
        """Tell how a snapshot is now."""
        found = await self._store.read(lambda c: snapshots.get(c, identity))
        if found is not None:
            self._publish(self._shown(found))

    def progressed(self, snapshot: Snapshot) -> None:
        """Tell now and then how much of a snapshot has come."""
        if snapshot["received_bytes"] % _TOLD_EVERY_BYTES < archive.PART_BYTES:
            self._publish(self._shown(snapshot))

    def _publish(self, snapshot: Snapshot) -> None:
        if snapshot["run"] is not None:
            self._audience.publish_snapshot(snapshot["run"], snapshot)

    def _shown(self, snapshot: Snapshot) -> Snapshot:
        state = snapshot["state"]
        if is_abandoned(snapshot, self.is_connected):
            state = "incomplete"
        return {**snapshot, "state": state}

    def _parts(self, identity: str) -> Generator[bytes]:
        start = 0

        def read(connection: Connection) -> bytes | None:
            return snapshots.part(connection, identity, start)

        while (body := self._store.read_now(read)) is not None:
            yield body
            start += len(body)

    async def _remove_parts(self, identity: str) -> None:
        while await self._store.write(lambda c: snapshots.remove_parts(c, identity)):
            continue

    async def _add(self, row: dict[str, Any]) -> None:
        def add(connection: Connection) -> tuple[str | None, list[Snapshot]]:
            reason, forgotten = make_room(
                connection, row["run"], row["wire_bytes"], self._limits, self.is_connected
            )
            if reason is None:
                snapshots.add(connection, row)
            return reason, forgotten

        reason, forgotten = await self._store.write(add)
        for each in forgotten:
            await self.forget_parts(each)
        if reason is not None:
            raise VramscopeError(CONFLICT, reason)

    async def _append(self, identity: str, start: int, body: bytes) -> None:
        if not await self._store.write(lambda c: snapshots.append(c, identity, start, body)):
            raise VramscopeError(CONFLICT, "the snapshot was deleted while it was stored")

    def _checked(self, file: BinaryIO, packed: BinaryIO, name: str) -> archive.Unpacked:
        """Read a person's file as a snapshot, and gzip it where it is not. In a worker thread."""
        try:
            file.seek(0)
            start = file.read(2)
            file.seek(0)
            # Nothing in it is executed: it is read as plain data, within limits.
            read_snapshot(file)
            file.seek(0)
            if archive.is_gzip(start):
                for piece in archive.pieces(file):
                    packed.write(piece)
            else:
                archive.pack(file, packed)
            packed.seek(0)
            return archive.check(archive.pieces(packed), self._limits.snapshot_raw_bytes)
        except SnapshotError as error:
            what = str(error).removeprefix("snapshot: ")
            raise VramscopeError(BAD_REQUEST, f"{name or 'the file'}: {what}") from None
        except ArchiveError as error:
            raise VramscopeError(BAD_REQUEST, f"{name or 'the file'}: {error}") from None

    def _row(self, run_id: str | None, rank: int | None, name: str, who: str) -> dict[str, Any]:
        now_ns = self._clock_ns()
        return {
            "id": uuid.uuid4().hex,
            "run": run_id,
            "rank": rank,
            "stream": None,
            "device": None,
            "step": None,
            "taken_ns": now_ns,
            "received_ns": now_ns,
            "mode": "user",
            "stacks": False,
            "origin": "upload",
            "name": name,
            "issued_by": who,
            "steps": [],
        }


def _require(connection: Connection, identity: str) -> Snapshot:
    found = snapshots.get(connection, identity)
    if found is None:
        raise VramscopeError(NOT_FOUND, f"no snapshot {identity!r}")
    return found


def require_complete(snapshot: Snapshot) -> None:
    """Let only a snapshot pass that can be read.

    Raises:
        VramscopeError: ``conflict``, with what is the matter.
    """
    if snapshot["state"] == snapshots.FAILED:
        raise VramscopeError(CONFLICT, f"the snapshot did not arrive: {snapshot['reason']}")
    if snapshot["state"] != snapshots.COMPLETE:
        received = f"{snapshot['received_bytes']} of {snapshot['wire_bytes']} bytes"
        raise VramscopeError(CONFLICT, f"the snapshot has not arrived yet: {received}")


def _copy(connection: Connection, identity: str, file: BinaryIO) -> None:
    require_complete(_require(connection, identity))
    for body in snapshots.parts(connection, identity):
        file.write(body)
