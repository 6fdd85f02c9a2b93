"""Snapshots and reports on their way to the server: behind everything else, a piece at a time.

They lie in files. Reports of running out of memory go before snapshots. What is on its way survives
a lost connection and a restart of the server: on each connection the server says from which byte on
it wants the first of them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from vramscope_protocol.codec import MAX_SNAPSHOT_CHUNK_BYTES
from vramscope_protocol.messages import (
    Message,
    OomBegin,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
)

_FRAME_BYTES: Final = 1024
"""What a chunk takes in its message beside the data, and more."""
_MIN_CHUNK_BYTES: Final = 512
_MOST_TIMES: Final = 4
"""A server may ask for a snapshot as often as this, all in all."""


MAX_REPORTS: Final = 64
"""Reports that wait at most; then the oldest go."""


class Shipment(Struct, eq=False):
    """A snapshot or a report, ready to be sent."""

    begin: SnapshotBegin | OomBegin
    path: str
    """Of its file, which is deleted in the end."""
    offset: int = 0
    """What the server has."""
    sent_bytes: int = 0
    """All in all, whatever was sent twice included."""
    data: bytes = b""
    """All of it, where it could not be written to a file."""
    over: Callable[[str], object] | None = None
    """Told in the end why it was not delivered, or ""; then the file is left to it."""


class SnapshotLane:
    """A queue of snapshots, of which one conversation at a time sends the first.

    Args:
        on_end: told of each shipment that is over, and why it was not delivered; empty if it was.
    """

    def __init__(self, on_end: Callable[[Shipment, str], None]) -> None:
        self._on_end = on_end
        # Re-entrant: a garbage collection inside may run our code on the same thread.
        self._lock = threading.RLock()
        self._queue: deque[Shipment] = deque()
        self._owner: object = None
        self._is_begun = False
        self._is_waiting = False
        self._empty = threading.Event()
        self._empty.set()
        self.wake: Callable[[], None] = _nothing
        """Called when there is something to send; set by whoever sends."""

    def add(self, shipment: Shipment) -> None:
        """Send this after those that wait: a report before all snapshots. Any thread."""
        with self._lock:
            if type(shipment.begin) is OomBegin:
                self._queue.insert(self._place_of_report(), shipment)
                self._drop_reports()
            else:
                self._queue.append(shipment)
            self._empty.clear()
        self.wake()

    def claim(self, owner: object, wake: Callable[[], None]) -> None:
        """From now on ``owner`` sends, on a connection on which nothing was said yet."""
        with self._lock:
            self._owner = owner
            self._is_begun = self._is_waiting = False
            self.wake = wake

    def next_message(self, owner: object, max_message_bytes: int) -> Message | None:
        """What is to be sent now; ``None`` while an answer is due, or there is nothing."""
        with self._lock:
            if owner is not self._owner or self._is_waiting or not self._queue:
                return None
            shipment = self._queue[0]
            if not self._is_begun:
                self._is_begun = self._is_waiting = True
                return shipment.begin
            return self._next_chunk(shipment, max_message_bytes)

    def acked(self, owner: object, ack: SnapshotAck) -> None:
        """The server has answered. Receiver thread."""
        with self._lock:
            if owner is not self._owner or not self._is_waiting or not self._queue:
                return
            shipment = self._queue[0]
            if ack.id != shipment.begin.id:
                return
            self._is_waiting = False
            if ack.refused:
                self._end(ack.refused)
            elif ack.offset >= shipment.begin.wire_bytes:
                self._end("")
            else:
                shipment.offset = ack.offset

    def refuse_all(self, reason: str) -> None:
        """Send nothing of what waits: it is lost, and told so."""
        with self._lock:
            while self._queue:
                self._end(reason)

    def refuse_reports(self, reason: str) -> None:
        """The same for reports alone."""
        with self._lock:
            while self._queue and type(self._queue[0].begin) is OomBegin:
                self._end(reason)

    def wait_until_empty(self, timeout_s: float) -> bool:
        """Wait until all is delivered or lost; whether it is."""
        return self._empty.wait(max(0.0, timeout_s))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._queue

    def _place_of_report(self) -> int:
        """Behind other reports, and behind what has been begun."""
        place = 1 if self._is_begun else 0
        while place < len(self._queue) and type(self._queue[place].begin) is OomBegin:
            place += 1
        return min(place, len(self._queue))

    def _drop_reports(self) -> None:
        """A job may run out of memory every second for days while nobody takes its reports."""
        begun = 1 if self._is_begun else 0
        waiting = [each for each in list(self._queue)[begun:] if type(each.begin) is OomBegin]
        for oldest in waiting[:-MAX_REPORTS]:
            self._queue.remove(oldest)
            self._leave(oldest, "too many wait")

    def _next_chunk(self, shipment: Shipment, max_message_bytes: int) -> Message | None:
        size_bytes = min(MAX_SNAPSHOT_CHUNK_BYTES, max_message_bytes - _FRAME_BYTES)
        if size_bytes < _MIN_CHUNK_BYTES or self._is_endless(shipment):
            self._end("the server does not take it in")
            return None
        try:
            data = _piece(shipment, size_bytes)
        except OSError as error:
            self._end(f"its file cannot be read ({error.strerror})")
            return None
        if not data:
            self._end("its file ends too early")
            return None
        shipment.sent_bytes += len(data)
        self._is_waiting = True
        return SnapshotChunk(shipment.begin.id, shipment.offset, data)

    def _is_endless(self, shipment: Shipment) -> bool:
        wire_bytes = shipment.begin.wire_bytes
        return shipment.sent_bytes > _MOST_TIMES * wire_bytes + MAX_SNAPSHOT_CHUNK_BYTES

    def _end(self, reason: str) -> None:
        shipment = self._queue.popleft()
        self._is_begun = self._is_waiting = False
        self._leave(shipment, reason)

    def _leave(self, shipment: Shipment, reason: str) -> None:
        if shipment.over is not None:
            shipment.over(reason)
        else:
            with contextlib.suppress(OSError):
                os.unlink(shipment.path)
        if not self._queue:
            self._empty.set()
        self._on_end(shipment, reason)


def _piece(shipment: Shipment, size_bytes: int) -> bytes:
    if shipment.data:
        return shipment.data[shipment.offset : shipment.offset + size_bytes]
    with open(shipment.path, "rb") as file:
        file.seek(shipment.offset)
        return file.read(size_bytes)


def _nothing() -> None:
    """Nobody sends yet."""
