"""How long the training thread waits for batches."""

from __future__ import annotations

from typing import Final

from vramscope_protocol.columns import UNKNOWN

TOLD_NS: Final = 500_000_000
"""A single wait this long is a stretch of time of its own on the timeline."""


class DataWait:
    """Adds up the waits of one step. A loader that reads from another one counts once."""

    def __init__(self) -> None:
        self._depth = 0
        self._start_ns = 0
        self._waited_ns = 0
        self._has_waited = False

    def begin(self, now_ns: int) -> bool:
        """A batch is asked for at this time; whether this begins a wait."""
        self._depth += 1
        if self._depth == 1:
            self._start_ns = now_ns
        return self._depth == 1

    def end(self, now_ns: int) -> int | None:
        """It is there. The nanoseconds waited, or ``None`` while the wait goes on."""
        if self._depth != 1:
            self._depth = max(0, self._depth - 1)
            return None
        self._depth = 0
        waited_ns = now_ns - self._start_ns
        self._waited_ns += waited_ns
        self._has_waited = True
        return waited_ns

    def take_us(self) -> int:
        """Microseconds since the last call; unknown as long as no batch was ever asked for."""
        waited_us, self._waited_ns = self._waited_ns // 1000, 0
        return waited_us if self._has_waited else UNKNOWN
