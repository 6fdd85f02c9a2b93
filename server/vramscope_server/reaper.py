"""Ends connections that are closing and never finish, because the peer does not read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

_logger = logging.getLogger("vramscope.server")


class Transport(Protocol):
    """What is needed of an asyncio transport."""

    def is_closing(self) -> bool:
        """Whether it was closed, perhaps with bytes left to write."""
        ...

    def get_write_buffer_size(self) -> int:
        """Bytes that are left to write."""
        ...

    def abort(self) -> None:
        """Drop the connection and what is left to write."""
        ...


class Connection(Protocol):
    """What uvicorn keeps of each connection."""

    @property
    def transport(self) -> Transport:
        """The socket under it."""
        ...


class _Stalled(NamedTuple):
    left_bytes: int
    since_s: float


class Reaper:
    """A closed transport waits without end for its last bytes to be taken; this bounds the wait.

    Without it a peer that stopped reading, and that was cut off for it, would keep its socket,
    and would itself hang in a write that nobody reads any more.

    Args:
        connections: all open connections of the server, now and later.
        patience_s: how long a closing connection may go without a byte taken.
    """

    def __init__(
        self,
        connections: Collection[Connection],
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._patience_s = patience_s
        self._clock = clock
        self._stalled: dict[int, _Stalled] = {}

    def sweep(self) -> int:
        """Abort what is closing and has not moved for too long; how many that were."""
        now_s = self._clock()
        before, self._stalled = self._stalled, {}
        aborted = 0
        for connection in tuple(self._connections):
            transport = connection.transport
            if not transport.is_closing():
                continue
            left_bytes = transport.get_write_buffer_size()
            stalled = before.get(id(connection))
            # A slow peer that still takes something may go on: a large file needs its time.
            if stalled is None or stalled.left_bytes != left_bytes:
                stalled = _Stalled(left_bytes, now_s)
            if now_s - stalled.since_s >= self._patience_s:
                transport.abort()
                aborted += 1
                _logger.info("dropped a connection whose peer does not read")
            else:
                self._stalled[id(connection)] = stalled
        return aborted

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(self._patience_s / 4)
            self.sweep()
