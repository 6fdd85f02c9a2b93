"""What was dropped, by kind and reason: nothing is lost without being counted."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from vramscope_protocol.messages import Lost

OUTBOX_FULL: Final = "outbox_full"
SPOOL_FULL: Final = "spool_full"
SPOOL_UNREADABLE: Final = "spool_unreadable"
SNAPSHOT_LOST: Final = "snapshot_lost"
"""A snapshot that could not be delivered."""
TOO_LARGE: Final = "too_large"
"""A message larger than the server takes."""


class Losses:
    """Cumulative counts of dropped rows and messages. Any thread."""

    def __init__(self) -> None:
        # Re-entrant: a garbage collection inside a count may run our code on the same thread.
        self._lock = threading.RLock()
        self._samples: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()
        self._last_dropped_seq = 0
        self.version = 0
        """Rises with every count: a reader that has seen it has seen all."""

    def count(
        self, reason: str, *, samples: int = 0, steps: int = 0, messages: int = 0, seq: int = 0
    ) -> None:
        """Add to the totals of one reason."""
        if not (samples or steps or messages):
            return
        with self._lock:
            for counter, amount in (
                (self._samples, samples),
                (self._steps, steps),
                (self._messages, messages),
            ):
                if amount:
                    counter[reason] += amount
            self._last_dropped_seq = max(self._last_dropped_seq, seq)
            self.version += 1

    def message(self) -> Lost:
        """The totals as the message that tells the server."""
        with self._lock:
            return Lost(
                dict(self._samples),
                dict(self._steps),
                dict(self._messages),
                self._last_dropped_seq,
            )
