"""The transport half of one browser connection: its outgoing queue and its writer.

The slow-reader policy has two limits. Reaching the hard cap once ends the connection; staying
above the lower mark for a while ends it too. The page then reconnects and asks for the present
state, which is cheaper for both sides than a backlog.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vramscope_protocol.errors import SLOW_READER, ProtocolError
from vramscope_server.settings import Limits


@dataclass
class _Waiting:
    frame: bytes
    key: str | None


class LiveConnection:
    """Frames on their way to one browser, bounded in number, in bytes and in time.

    Args:
        send: writes one frame; waits while the browser does not read.
        limits: ``live_queue_frames``, ``live_queue_bytes``, ``live_peak_frames``, ``live_peak_s``.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]], limits: Limits) -> None:
        self._send = send
        self._limits = limits
        self._queue: deque[_Waiting] = deque()
        self._by_key: dict[str, _Waiting] = {}
        self._queued_bytes = 0
        self._wake = asyncio.Event()
        self._peak_timer: asyncio.TimerHandle | None = None
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def waiting(self) -> int:
        """Frames that were put and not yet taken by the writer."""
        return len(self._queue)

    def put(self, frame: bytes, key: str | None = None) -> None:
        """Queue a frame; never blocks. A waiting frame of the same key is replaced in its place.

        After the connection has failed, frames are dropped: nobody will read them.
        """
        if self._failed.done():
            return
        waiting = self._by_key.get(key) if key is not None else None
        if waiting is not None:
            self._queued_bytes += len(frame) - len(waiting.frame)
            waiting.frame = frame
        else:
            waiting = _Waiting(frame, key)
            self._queue.append(waiting)
            self._queued_bytes += len(frame)
            if key is not None:
                self._by_key[key] = waiting
        self._check_limits()
        self._wake.set()

    def fail(self, error: ProtocolError) -> None:
        """End the connection for a reason that the browser is told. The first reason counts."""
        if not self._failed.done():
            self._failed.set_exception(error)

    async def write(self) -> None:
        """Send frames as they come, until the connection fails or this is cancelled.

        Raises:
            ProtocolError: why the connection has to end.
        """
        sender = asyncio.create_task(self._send_all())
        try:
            await asyncio.wait({sender, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop_peak_timer()
            sender.cancel()
            await asyncio.wait({sender})
        if self._failed.done():
            self._failed.result()
        if not sender.cancelled():
            sender.result()

    def close(self) -> None:
        """Drop what waits and stop the timer."""
        self._stop_peak_timer()
        self._queue.clear()
        self._by_key.clear()
        self._queued_bytes = 0
        if self._failed.done():
            self._failed.exception()  # taken note of: whoever waits on write() has it too
        else:
            self._failed.cancel()

    async def _send_all(self) -> None:
        while True:
            while self._queue:
                waiting = self._queue.popleft()
                if waiting.key is not None:
                    del self._by_key[waiting.key]
                self._queued_bytes -= len(waiting.frame)
                if len(self._queue) <= self._limits.live_peak_frames:
                    self._stop_peak_timer()
                await self._send(waiting.frame)
            self._wake.clear()
            await self._wake.wait()

    def _check_limits(self) -> None:
        limits = self._limits
        if len(self._queue) > limits.live_queue_frames or (
            self._queued_bytes > limits.live_queue_bytes
        ):
            self.fail(
                ProtocolError(
                    SLOW_READER,
                    f"expected a reader with at most {limits.live_queue_frames} frames and "
                    f"{limits.live_queue_bytes} bytes behind, got {len(self._queue)} frames and "
                    f"{self._queued_bytes} bytes",
                )
            )
        elif len(self._queue) > limits.live_peak_frames and self._peak_timer is None:
            loop = asyncio.get_running_loop()
            self._peak_timer = loop.call_later(limits.live_peak_s, self._stayed_above_peak)

    def _stayed_above_peak(self) -> None:
        self._peak_timer = None
        self.fail(
            ProtocolError(
                SLOW_READER,
                f"more than {self._limits.live_peak_frames} frames behind for "
                f"{self._limits.live_peak_s:g} s",
            )
        )

    def _stop_peak_timer(self) -> None:
        if self._peak_timer is not None:
            self._peak_timer.cancel()
            self._peak_timer = None
