"""Turns many requests for news into one piece of news per interval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pacer:
    """Runs ``action`` soon after a request, and at most once per interval.

    The last request of a burst is never lost: it is served when the interval is over.
    """

    def __init__(self, interval_s: float, action: Callable[[], None]) -> None:
        self._interval_s = interval_s
        self._action = action
        self._timer: asyncio.TimerHandle | None = None
        self._last_s: float | None = None

    def request(self) -> None:
        """Ask for the action; a request that already waits covers this one."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        if self._last_s is not None:
            due_s = max(due_s, self._last_s + self._interval_s)
        self._timer = loop.call_at(due_s, self._run)

    def cancel(self) -> None:
        """Forget a request that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = None
        self._last_s = asyncio.get_running_loop().time()
        self._action()
