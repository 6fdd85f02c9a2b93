"""A thread that judges, so that no judge holds up the event loop; one that hangs is given up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_LOST: Final = 3
"""Threads that may hang in a judge; after that nothing is judged any more."""

_logger = logging.getLogger("vramscope.findings")


class JudgeHangs(Exception):
    """The work did not end in time, or no thread is left."""


class JudgeThread:
    """Does one piece of work at a time. A daemon thread: the end of the server waits for none.

    Args:
        limit_s: longest time that one piece may take; then another thread goes on.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._work: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self.lost = 0
        """Threads that were given up."""

    async def call(self, function: Callable[[], T]) -> T:
        """Call ``function`` in the thread.

        Raises:
            JudgeHangs: it takes too long. What it does from then on is not heard of.
        """
        if self._work is None:
            if self.lost >= MAX_LOST:
                raise JudgeHangs(f"{self.lost} threads hang in judges; nothing is judged any more")
            self._work = queue.SimpleQueue()
            name = "vramscope-judge"
            threading.Thread(target=_do_work, args=(self._work,), name=name, daemon=True).start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._work.put(lambda: _answer(loop, future, function))
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._limit_s)
        except asyncio.TimeoutError:  # not the builtin one before Python 3.11
            self.stop()
            self.lost += 1
            _logger.error("a judge did not end within %.0f s and is given up", self._limit_s)
            raise JudgeHangs(f"expected judges to end within {self._limit_s:g} s") from None

    def stop(self) -> None:
        """End the thread after what it is doing."""
        work, self._work = self._work, None
        if work is not None:
            work.put(None)


def _do_work(work: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (piece := work.get()) is not None:
        piece()


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], function: Callable[[], Any]
) -> None:
    result: Any = None
    failure: Exception | None = None
    try:
        result = function()
    except Exception as error:  # noqa: BLE001 - whoever waits for it is told
        failure = error

    def settle() -> None:
        if future.done():
            return
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)

    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(settle)
