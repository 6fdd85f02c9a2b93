"""The streams that the writer's thread has in memory."""

from __future__ import annotations

import time

from sqlalchemy import select

from vramscope_server.store import tables
from vramscope_server.store.database import Database
from vramscope_server.store.stream_state import StreamState, load_stream
from vramscope_server.store.submission import Submission


class StreamStates:
    """Loads streams when they are first written to, and lets go of the idle and the ended ones.

    Args:
        idle_s: a stream silent for this long is sealed and forgotten.
    """

    def __init__(self, database: Database, idle_s: float) -> None:
        self._database = database
        self._idle_s = idle_s
        self._states: dict[str, StreamState] = {}
        self._touched: dict[str, float] = {}
        self._next_idle_check = time.monotonic() + idle_s
        self._dirty: dict[str, StreamState] = {}
        self._acks: dict[str, int] = {}
        self._epoch = 0
        self._failed: dict[str, int] = {}

    def admit(self) -> int:
        """Number of a new registration. When a stream fails, what its connection sent before is
        lost to this server, and so what it sent after must not be stored: an ack of that would
        count for both. Messages of a later registration start where the store ends."""
        self._epoch += 1
        return self._epoch

    def has_failed(self, uid: str, epoch: int) -> bool:
        """Whether nothing of this registration is stored any more. May be asked in any thread."""
        return epoch <= self._failed.get(uid, -1)

    def load_open(self) -> None:
        """Load every stream that has rows outside a sealed chunk: left by a server that died."""
        table = tables.streams
        with self._database.read() as connection:
            uids = connection.scalars(
                select(table.c.uid).where(table.c.id.in_(select(tables.heads.c.stream_id)))
            ).all()
            for uid in uids:
                state = load_stream(connection, uid)
                if state is not None:
                    self._add(state)

    def absorb(self, submission: Submission) -> None:
        """Hand a message to its stream; a message of an unknown stream is not acked."""
        uid = submission.stream
        if uid in self._failed:
            if self.has_failed(uid, submission.epoch):
                return
            del self._failed[uid]
        state = self._states.get(uid)
        if state is None:
            with self._database.read() as connection:
                state = load_stream(connection, uid)
            if state is None:
                return
            self._add(state)
        self._touched[uid] = time.monotonic()
        state.absorb(submission)
        self._dirty[uid] = state

    def dirty(self) -> list[StreamState]:
        """Streams with something to write."""
        return list(self._dirty.values())

    def note_committed(self, state: StreamState) -> None:
        """Remember what to ack; an ended stream leaves memory."""
        state.committed()
        self._dirty.pop(state.uid, None)
        self._acks[state.uid] = state.committed_seq
        if state.ended:
            self.forget(state.uid)

    def fail(self, uid: str) -> None:
        """Drop what is not committed of a stream, and whatever its connection still sends."""
        self._failed[uid] = self._epoch
        self.forget(uid)

    def forget(self, uid: str) -> None:
        """Drop a stream from memory; what was committed of it is loaded again when needed."""
        state = self._states.pop(uid, None)
        if state is not None:
            state.dirty = False
        self._touched.pop(uid, None)
        self._dirty.pop(uid, None)

    def take_acks(self) -> dict[str, int]:
        """Highest committed sequence number by stream, since the last call."""
        acks, self._acks = self._acks, {}
        return acks

    def has_idle(self) -> bool:
        """Whether there is an idle stream; looked at only now and then."""
        now = time.monotonic()
        if now < self._next_idle_check:
            return False
        self._next_idle_check = now + self._idle_s / 4
        return bool(self._idle())

    def seal_idle(self) -> None:
        """Seal the open chunks of idle streams, so that a lost rank is not left as heads."""
        for uid in self._idle():
            state = self._states[uid]
            state.seal_open()
            state.ended = True
            if state.dirty:
                self._dirty[uid] = state
            else:
                self.forget(uid)

    def _idle(self) -> list[str]:
        latest = time.monotonic() - self._idle_s
        return [uid for uid, touched in self._touched.items() if touched <= latest]

    def _add(self, state: StreamState) -> None:
        self._states[state.uid] = state
        self._touched[state.uid] = time.monotonic()
