"""Takes reports in from agents, piece after piece: in memory until they are whole."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from typing import Any, Final, Protocol

from sqlalchemy.exc import SQLAlchemyError

from vramscope_protocol.codec import MAX_OOM_BYTES
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import OomBegin, SnapshotAck, SnapshotChunk
from vramscope_server.ingest.message_checks import check_oom, check_snapshot
from vramscope_server.ooms.reports import OomReports
from vramscope_server.store.claims import may_deliver
from vramscope_server.store.runs import StreamRecord

_logger = logging.getLogger("vramscope.ooms")

_MAX_PARTIAL: Final = 256


class KnownRuns(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class _Partial:
    def __init__(self, begin: OomBegin) -> None:
        self.begin = begin
        self.data = bytearray()
        self.stream = ""
        """Uid of the one on which it was begun last: its pieces come on no other."""


class OomReceiver:
    """Puts reports together. Lives on the event loop; only storing is awaited.

    An agent that comes back on another connection goes on where it was, unless the server began
    anew meanwhile.

    Args:
        reports: takes what is whole.
        registry: which runs there are.
        max_bytes: what all that is still coming may take.
    """

    def __init__(self, reports: OomReports, registry: KnownRuns, max_bytes: int) -> None:
        self._reports = reports
        self._registry = registry
        self._max_bytes = max_bytes
        self._partial: OrderedDict[tuple[str, str], _Partial] = OrderedDict()
        """By run and id: nobody gets in the way of another run with an id that he has seen."""

    async def take(self, stream: StreamRecord, message: OomBegin | SnapshotChunk) -> SnapshotAck:
        """Take what came on a stream; the answer says from where on more is wanted.

        Raises:
            ProtocolError: the message says what cannot be.
        """
        if isinstance(message, OomBegin):
            return await self._begin(stream, message)
        check_snapshot(message)
        return await self._append(stream, message)

    async def _begin(self, stream: StreamRecord, begin: OomBegin) -> SnapshotAck:
        check_oom(begin)
        if begin.wire_bytes > MAX_OOM_BYTES:
            words = f"expected a report of at most {MAX_OOM_BYTES} bytes, got {begin.wire_bytes}"
            return SnapshotAck(begin.id, refused=words)
        if self._registry.run(begin.run) is None:
            return SnapshotAck(begin.id, refused="this server does not know the run")
        try:
            if not await self._may_deliver(stream, begin):
                return SnapshotAck(begin.id, refused="the run that it names is somebody else's")
            if await self._reports.is_known(begin.id):
                return SnapshotAck(begin.id, begin.wire_bytes)
        except (VramscopeError, SQLAlchemyError) as error:
            return self._refused(begin.id, error)
        key = (begin.run, begin.id)
        partial = self._partial.get(key)
        if partial is None or partial.begin.sha256 != begin.sha256:
            partial = self._partial[key] = _Partial(begin)
        partial.begin, partial.stream = begin, stream.uid
        self._partial.move_to_end(key)
        self._make_room()
        return SnapshotAck(begin.id, len(partial.data))

    async def _may_deliver(self, stream: StreamRecord, begin: OomBegin) -> bool:
        """Whether a report may come on this stream: of its own run, or, of one who was killed,
        of another that can be shown to be in the same hands."""
        if begin.run == stream.run_id:
            return True
        claim = await self._reports.claim_of(begin.run)
        return claim is not None and may_deliver(claim, begin, stream.owner)

    async def _append(self, stream: StreamRecord, chunk: SnapshotChunk) -> SnapshotAck:
        begun = (
            key
            for key, partial in self._partial.items()
            if key[1] == chunk.id and partial.stream == stream.uid
        )
        key = next(begun, None)
        if key is None:
            return SnapshotAck(chunk.id, refused="it was not begun, or there is no room for it")
        partial = self._partial[key]
        wire_bytes = partial.begin.wire_bytes
        if chunk.offset == len(partial.data):
            partial.data += chunk.data
        self._partial.move_to_end(key)
        self._make_room()
        if len(partial.data) < wire_bytes:
            return SnapshotAck(chunk.id, len(partial.data))
        self._partial.pop(key, None)
        data = bytes(partial.data)
        if len(data) > wire_bytes or hashlib.sha256(data).hexdigest() != partial.begin.sha256:
            return SnapshotAck(chunk.id, refused="what came is not what was announced")
        try:
            await self._reports.put(partial.begin, data)
        except ValueError as error:
            return SnapshotAck(chunk.id, refused=str(error)[:400])
        except (VramscopeError, SQLAlchemyError) as error:
            return self._refused(chunk.id, error)
        except Exception:  # without an answer the agent would wait, with all that is behind it
            _logger.exception("report %s could not be taken in", chunk.id)
            return SnapshotAck(chunk.id, refused="the server cannot take it in; its log says why")
        return SnapshotAck(chunk.id, wire_bytes)

    def _refused(self, identity: str, error: Exception) -> SnapshotAck:
        _logger.error("report %s: %s", identity, error)
        return SnapshotAck(identity, refused="the server's database does not take it")

    def _make_room(self) -> None:
        held_bytes = sum(len(partial.data) for partial in self._partial.values())
        while len(self._partial) > 1 and (
            held_bytes > self._max_bytes or len(self._partial) > _MAX_PARTIAL
        ):
            _, gone = self._partial.popitem(last=False)
            held_bytes -= len(gone.data)
