"""The bounded queue between the event loop and the writer's thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from vramscope_server.store.database import StoreError
from vramscope_server.store.submission import Submission


@dataclass(slots=True)
class Call:
    """A function to run in the writer's thread, in a transaction of its own."""

    function: Callable[[Connection], Any]
    future: Future[Any]


class SubmissionQueue:
    """Messages and calls in the order in which they came.

    A message counts against the bounds until it is committed, not until it is taken. When they
    are reached, messages are refused and the sender waits: nothing is ever dropped here. Calls
    are few and always taken.

    Whoever waits in :meth:`take` is not woken by every message, which would cost more than the
    message: by the first that is pending, by one that is urgent, by a call, and when much waits.

    Args:
        max_bytes, max_messages: bounds of what is not committed.
        wake_bytes: wake for every message from that much on.
    """

    def __init__(self, max_bytes: int, max_messages: int, wake_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_messages = max_messages
        self._wake_bytes = wake_bytes
        self._changed = threading.Condition()
        self._items: deque[Submission | Call] = deque()
        self._waiters: list[Callable[[], object]] = []
        self._oldest_at = 0.0
        self.pending_bytes = 0
        self.pending_messages = 0
        self.closed = False

    def put(self, submission: Submission) -> bool:
        """Add a message; ``False`` when the queue is full or closed."""
        with self._changed:
            if self._is_full() or self.closed:
                return False
            wakes = not self.pending_messages or submission.is_urgent
            if not self.pending_messages:
                self._oldest_at = time.monotonic()
            self.pending_bytes += submission.size_bytes
            self.pending_messages += 1
            self._items.append(submission)
            if wakes or self.pending_bytes >= self._wake_bytes or self._is_full():
                self._changed.notify_all()
        return True

    @property
    def has_items(self) -> bool:
        """Whether :meth:`take` would return something at once."""
        return bool(self._items)

    def put_call(self, function: Callable[[Connection], Any]) -> Future[Any]:
        """Add a call; its future fails at once when the queue is closed."""
        future: Future[Any] = Future()
        with self._changed:
            if self.closed:
                future.set_exception(StoreError("the store is closing"))
            else:
                self._items.append(Call(function, future))
                self._changed.notify_all()
        return future

    def when_space(self, callback: Callable[[], object]) -> None:
        """Call back once when a message may fit or never will; at once if that is so now."""
        with self._changed:
            if self._is_full() and not self.closed:
                self._waiters.append(callback)
                return
        callback()

    def take(self, deadline: float) -> Submission | Call | None:
        """Next item; ``None`` at the deadline, or when the queue is closed and empty."""
        with self._changed:
            while not self._items and not self.closed:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    return None
                self._changed.wait(remaining_s)
            return self._items.popleft() if self._items else None

    def committed(self, size_bytes: int, messages: int) -> None:
        """Give space back: so much is in the database now."""
        with self._changed:
            self.pending_bytes -= size_bytes
            self.pending_messages -= messages
            self._oldest_at = time.monotonic()
            waiters, self._waiters = self._waiters, []
        for callback in waiters:
            callback()

    def oldest_pending_s(self) -> float:
        """For how long something has been waiting for a commit."""
        with self._changed:
            return time.monotonic() - self._oldest_at if self.pending_messages else 0.0

    def close(self) -> None:
        """Take nothing more; what is in the queue can still be taken out."""
        with self._changed:
            self.closed = True
            waiters, self._waiters = self._waiters, []
            self._changed.notify_all()
        for callback in waiters:
            callback()

    def fail_calls(self) -> None:
        """Answer the calls that will never run."""
        with self._changed:
            items = list(self._items)
            self._items.clear()
        for item in items:
            if isinstance(item, Call) and item.future.set_running_or_notify_cancel():
                item.future.set_exception(StoreError("the store has closed"))

    def _is_full(self) -> bool:
        return self.pending_bytes >= self._max_bytes or self.pending_messages >= self._max_messages
