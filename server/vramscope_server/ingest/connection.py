"""One agent's open connection: what waits to be sent to it, and how it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import Command, Decision, MapWanted, SnapshotAck
from vramscope_protocol.session import ServerSession
from vramscope_protocol.version import FEATURE_MAP, FEATURE_PREPARE
from vramscope_server.store.runs import StreamRecord

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

NORMAL_CLOSE: Final = 1000


class _Gone(Exception):
    """The connection takes nothing any more."""


class AgentConnection:
    """The sending side of one connection. Acks replace one another, so the queue holds commands
    and decisions alone and an agent that does not read costs the server nothing but this object.

    Args:
        send_timeout_s: an agent that takes no frame for so long is disconnected.
        queue_frames: commands that may wait; more are refused, and of decisions twice as many.
    """

    def __init__(
        self,
        session: ServerSession,
        send: Send,
        *,
        send_timeout_s: float = 10.0,
        queue_frames: int = 64,
    ) -> None:
        self.session = session
        self._send = send
        self._send_timeout_s = send_timeout_s
        self._queue_frames = queue_frames
        self._frames: deque[bytes] = deque()
        self._ack_seq = 0
        self._sent_ack_seq = 0
        self._snapshot_ack: bytes | None = None
        self._map_wanted: MapWanted | None = None
        self._goodbye_seq: int | None = None
        self._failure: ProtocolError | None = None
        self._wake = asyncio.Event()
        self._stream: StreamRecord | None = None

    @property
    def stream(self) -> StreamRecord:
        """The stream that registered; there is none before :meth:`open`."""
        if self._stream is None:
            raise RuntimeError("expected a registered stream")
        return self._stream

    @property
    def is_open(self) -> bool:
        """Whether a stream registered."""
        return self._stream is not None

    @property
    def key(self) -> tuple[str, int]:
        """Run and rank."""
        return self.stream.run_id, self.stream.info.rank

    def open(self, stream: StreamRecord, software: str) -> None:
        """Welcome a stream; the agent sends what comes after its ``last_seq``."""
        self._stream = stream
        self._ack_seq = self._sent_ack_seq = stream.last_seq
        self._frames.append(self.session.welcome(stream.last_seq, software))
        self._wake.set()

    def ack(self, seq: int) -> None:
        """Everything up to ``seq`` is committed."""
        if seq > self._ack_seq:
            self._ack_seq = seq
            self._wake.set()

    def snapshot_ack(self, ack: SnapshotAck) -> None:
        """How much of a snapshot is committed. One is due at a time."""
        self._snapshot_ack = self.session.snapshot_ack(ack)
        self._wake.set()

    def close_after(self, goodbye_seq: int) -> None:
        """Close in peace once the agent's goodbye is committed and acked."""
        self._goodbye_seq = goodbye_seq
        self._wake.set()

    def send_command(self, command: Command) -> bool:
        """Queue a command; ``False`` if too many wait or the connection ends."""
        if len(self._frames) >= self._queue_frames or self._failure is not None:
            return False
        self._frames.append(self.session.command(command))
        self._wake.set()
        return True

    @property
    def can_prepare(self) -> bool:
        """Whether this agent prepares commands for a step."""
        return FEATURE_PREPARE in self.session.features

    def send_decision(self, decision: Decision) -> bool:
        """Queue a decision, behind the command that it is about; ``False`` as for a command.

        It has room where a command has none: training stands still until it comes.
        """
        if len(self._frames) >= 2 * self._queue_frames or self._failure is not None:
            return False
        self._frames.append(self.session.decision(decision))
        self._wake.set()
        return True

    def want_map(self, wanted: MapWanted) -> bool:
        """Ask for the memory map; ``False`` if this agent sends none. A wish that still waits is
        replaced, but the wish to begin anew stays."""
        if FEATURE_MAP not in self.session.features:
            return False
        waiting = self._map_wanted
        is_full = wanted.full or (waiting is not None and waiting.full)
        self._map_wanted = MapWanted(wanted.seconds, full=is_full)
        self._wake.set()
        return True

    def fail(self, error: ProtocolError) -> None:
        """End the connection: what waits is sent, then the reason, then it is closed."""
        if self._failure is None:
            self._failure = error
            self._wake.set()

    @property
    def is_failing(self) -> bool:
        """Whether the connection is about to be ended for a reason."""
        return self._failure is not None

    async def run_sender(self) -> None:
        """Send until the connection ends: after a failure, after a goodbye, or when it is gone."""
        try:
            while await self._send_waiting():
                await self._wake.wait()
                self._wake.clear()
        except _Gone:
            return

    async def _send_waiting(self) -> bool:
        """Send everything that waits; ``False`` when that ended the connection."""
        while self._frames:
            await self._send_bytes(self._frames.popleft())
        wanted, self._map_wanted = self._map_wanted, None
        if wanted is not None:
            await self._send_bytes(self.session.map_wanted(wanted))
        if self._ack_seq > self._sent_ack_seq:
            self._sent_ack_seq = self._ack_seq
            await self._send_bytes(self.session.ack(self._sent_ack_seq))
        snapshot_ack, self._snapshot_ack = self._snapshot_ack, None
        if snapshot_ack is not None:
            await self._send_bytes(snapshot_ack)
        if self._failure is not None:
            failure = self._failure
            await self._send_bytes(self.session.fail(failure))
            await self._close(failure.close_code, failure.code)
            return False
        if self._goodbye_seq is not None and self._sent_ack_seq >= self._goodbye_seq:
            await self._close(NORMAL_CLOSE, "goodbye")
            return False
        return True

    async def _send_bytes(self, frame: bytes) -> None:
        await self._transmit({"type": "websocket.send", "bytes": frame})

    async def _close(self, code: int, reason: str) -> None:
        await self._transmit({"type": "websocket.close", "code": code, "reason": reason})

    async def _transmit(self, message: Message) -> None:
        try:
            await asyncio.wait_for(self._send(message), self._send_timeout_s)
        except (OSError, RuntimeError, asyncio.TimeoutError) as error:  # 3.10
            # What an ASGI server raises when the peer left or the server itself closed.
            raise _Gone from error
