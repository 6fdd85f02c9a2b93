"""Everything that must reach the server, in order, in bounded memory and then on disk.

    put -> incoming -> waiting -> spool (oldest on disk) -> in flight -> acknowledged
                          |_______________________________/^
                              while the spool is empty

``put`` may be called from any thread, also from inside a garbage collection that interrupts
another ``put``: it appends to a deque, which is atomic, and only takes the lock if that is free.
Whoever holds the lock empties the deque, so nothing stays in it for longer than a lock is held,
and no lock is held across a disk access.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final

from vramscope.notices import Notices
from vramscope.outbox.entry import Entry, count_lost, entry_of
from vramscope.outbox.losses import OUTBOX_FULL, Losses
from vramscope.outbox.spool import Spool
from vramscope.outbox.wakeup import Wakeup
from vramscope_protocol.messages import Batch, DurableMessage, FieldTable

SPOOL_NOTE: Final = "spool"
_SPOOL_RETRY_S: Final = 10.0
_SPILL_ENTRIES: Final = 256


class Outbox:
    """Queue of durable messages between the threads of the job and the transport.

    Args:
        max_bytes: memory bound; reaching it drops the oldest message in memory, counted.
        spool: where the oldest messages go from half of the bound on; ``None`` is nowhere.
        losses: where drops are counted.
        notices: where a failing spool is noted.
    """

    def __init__(
        self, max_bytes: int, spool: Spool | None, losses: Losses, notices: Notices
    ) -> None:
        self.tables: dict[int, FieldTable] = {}
        """Field tables by number; the transport sends each once per connection."""
        self.wakeup = Wakeup()
        """Set whenever there may be something to send."""
        self.losses = losses
        self._max_bytes = max_bytes
        self._spool = spool
        self._notices = notices
        self._lock = threading.Lock()
        self._incoming: deque[DurableMessage] = deque()
        self._last_seq = 0
        self._waiting: deque[Entry] = deque()
        self._spilling: deque[Entry] = deque()
        self._in_flight: deque[Entry] = deque()
        self._again: deque[Entry] = deque()
        self._queued_bytes = 0
        self._in_flight_bytes = 0
        self._highest_sent_seq = 0
        self._spool_broken_until_s = 0.0

    def declare(self, table: FieldTable) -> None:
        """Make a field table known before the first batch that refers to it."""
        self.tables[table.table] = table

    def put(self, message: DurableMessage) -> None:
        """Take a message and number it. Never blocks; any thread, re-entrant.

        It is sent at once; rows wait for :meth:`send`, as they come several batches at a time.
        """
        self._incoming.append(message)
        # Not the lock's owner: the owner may be this very thread, below us on the stack.
        while self._incoming and self._lock.acquire(blocking=False):
            try:
                self._number_incoming()
            finally:
                self._lock.release()
        if not isinstance(message, Batch):
            self.wakeup.set()

    def send(self) -> None:
        """Have the transport wake up for what was put."""
        self.wakeup.set()

    def count_lost(
        self, reason: str, *, samples: int = 0, steps: int = 0, messages: int = 0
    ) -> None:
        """Count what was lost before it became a message."""
        self.losses.count(reason, samples=samples, steps=steps, messages=messages)

    def spill(self) -> None:
        """Move the oldest waiting messages to the spool while memory is above half its bound.

        Called by the sampler thread: the only one that may wait for a disk.
        """
        if self._spool is None or self.memory_bytes <= self._max_bytes // 2:
            return
        if time.monotonic() < self._spool_broken_until_s:
            return
        with self._lock:
            self._number_incoming()
            while self._waiting and self._queued_bytes > self._max_bytes // 4:
                if len(self._spilling) == _SPILL_ENTRIES:
                    break
                entry = self._waiting.popleft()
                self._queued_bytes -= entry.size_bytes
                self._spilling.append(entry)
        self._write_spilling(self._spool)

    def next_unsent(self) -> Entry | None:
        """The oldest message that is not on its way, which it now is. Transport thread only."""
        with self._lock:
            self._number_incoming()
            if self._again:
                return self._send(self._again.popleft(), queued=True)
        entry = self._spool.take() if self._spool is not None else None
        with self._lock:
            if entry is not None:
                return self._send(entry, queued=False)
            # What is being written to the spool is older than all that waits in memory.
            if self._spilling or not self._waiting or not self._is_spool_empty():
                return None
            return self._send(self._waiting.popleft(), queued=True)

    def acked(self, seq: int) -> bool:
        """Forget everything up to ``seq``; ``False`` if that was never sent."""
        with self._lock:
            if seq > self._highest_sent_seq:
                return False
            while self._in_flight and self._in_flight[0].seq <= seq:
                self._in_flight_bytes -= self._in_flight.popleft().size_bytes
            while self._again and self._again[0].seq <= seq:
                self._queued_bytes -= self._again.popleft().size_bytes
        return True

    def rewind(self) -> None:
        """Send again what is on its way: the connection that carried it is gone."""
        with self._lock:
            self._queued_bytes += self._in_flight_bytes
            self._in_flight_bytes = 0
            while self._in_flight:
                self._again.appendleft(self._in_flight.pop())

    @property
    def unacked_bytes(self) -> int:
        """Bytes sent on the present connection and not acknowledged."""
        return self._in_flight_bytes

    @property
    def memory_bytes(self) -> int:
        """Memory that the queued messages take."""
        return self._queued_bytes + self._in_flight_bytes

    @property
    def queued_messages(self) -> int:
        """Messages in memory that are not acknowledged."""
        queued = len(self._incoming) + len(self._waiting) + len(self._spilling)
        return queued + len(self._in_flight) + len(self._again)

    @property
    def spool_bytes(self) -> int:
        """Bytes on disk."""
        return self._spool.size_bytes if self._spool is not None else 0

    @property
    def is_empty(self) -> bool:
        """Whether everything put so far is acknowledged (or counted as lost)."""
        with self._lock:
            self._number_incoming()
            return self._is_spool_empty() and not (
                self._waiting or self._spilling or self._in_flight or self._again
            )

    @property
    def first_seq(self) -> int:
        """Lowest sequence number that can still be sent."""
        with self._lock:
            for queue in (self._again, self._in_flight):
                if queue:
                    return queue[0].seq
            if not self._is_spool_empty() or self._spilling:
                return self._highest_sent_seq + 1
            return self._waiting[0].seq if self._waiting else self._last_seq + 1

    def drop_sent(self, entry: Entry, reason: str) -> None:
        """Count the entry that :meth:`next_unsent` gave last as lost instead of sending it."""
        with self._lock:
            if self._in_flight and self._in_flight[-1] is entry:
                self._in_flight.pop()
                self._in_flight_bytes -= entry.size_bytes
        count_lost(self.losses, reason, entry)

    def remove_spool(self, timeout_s: float = 1.0) -> None:
        """Delete the spool and what is in it: the stream is over."""
        if self._spool is not None:
            self._spool.remove(timeout_s)

    def forget_after_fork(self) -> None:
        """Let go of the parent's files, without a lock: in a child nobody else is left."""
        if self._spool is not None:
            self._spool.forget()

    def _number_incoming(self) -> None:
        """Give numbers in the order of arrival and keep the memory bound. Lock held."""
        while self._incoming:
            self._last_seq += 1
            entry = entry_of(self._incoming.popleft(), self._last_seq)
            self._waiting.append(entry)
            self._queued_bytes += entry.size_bytes
        while self._queued_bytes + self._in_flight_bytes > self._max_bytes:
            queue = self._again or self._waiting
            # What is in flight stays: it is bounded by the transport's window.
            if not queue:
                return
            dropped = queue.popleft()
            self._queued_bytes -= dropped.size_bytes
            count_lost(self.losses, OUTBOX_FULL, dropped)

    def _send(self, entry: Entry, *, queued: bool) -> Entry:
        if queued:
            self._queued_bytes -= entry.size_bytes
        self._in_flight.append(entry)
        self._in_flight_bytes += entry.size_bytes
        self._highest_sent_seq = max(self._highest_sent_seq, entry.seq)
        return entry

    def _is_spool_empty(self) -> bool:
        return self._spool is None or self._spool.is_empty

    def _write_spilling(self, spool: Spool) -> None:
        try:
            while self._spilling:
                spool.append(self._spilling[0])
                self._spilling.popleft()
        except OSError as error:
            self._spool_broken_until_s = time.monotonic() + _SPOOL_RETRY_S
            self._notices.note(
                SPOOL_NOTE,
                f"cannot write to the spool ({error.strerror or error}): "
                "what does not fit into memory is dropped",
            )
            self._put_back()
        else:
            self._notices.clear(SPOOL_NOTE)
        self.wakeup.set()

    def _put_back(self) -> None:
        with self._lock:
            while self._spilling:
                entry = self._spilling.pop()
                self._waiting.appendleft(entry)
                self._queued_bytes += entry.size_bytes
            self._number_incoming()
