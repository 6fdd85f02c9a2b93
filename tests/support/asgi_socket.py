"""A websocket to an ASGI application in the same event loop: no port, no thread, no server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

WAIT_S = 10.0


class AsgiSocket:
    """One connection. Everything that waits has a deadline.

    Args:
        reading: whether the peer takes frames; without, the application's sends block.
    """

    def __init__(
        self,
        app: App,
        path: str = "/ws/agent",
        headers: dict[str, str] | None = None,
        *,
        reading: bool = True,
    ) -> None:
        pairs = {"host": "127.0.0.1:8470", **(headers or {})}
        self._scope: Message = {
            "type": "websocket",
            "path": path,
            "client": ("127.0.0.1", 5555),
            "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
        }
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._may_send = asyncio.Event()
        if reading:
            self._may_send.set()
        self._app = app
        self._task: asyncio.Task[None] | None = None
        self.accepted = False
        self.close_code: int | None = None

    async def __aenter__(self) -> AsgiSocket:
        self._to_app.put_nowait({"type": "websocket.connect"})

        async def run() -> None:
            await self._app(self._scope, self._to_app.get, self._take)

        self._task = asyncio.create_task(run())
        first = await self._next()
        self.accepted = first["type"] == "websocket.accept"
        if not self.accepted:
            self.close_code = first.get("code", 1000)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await self.wait_ended()

    def send_bytes(self, frame: bytes) -> None:
        """A binary frame of the peer."""
        self._to_app.put_nowait({"type": "websocket.receive", "bytes": frame})

    def send_text(self, frame: str) -> None:
        """A text frame of the peer."""
        self._to_app.put_nowait({"type": "websocket.receive", "bytes": None, "text": frame})

    def leave(self) -> None:
        """The peer is gone."""
        self._to_app.put_nowait({"type": "websocket.disconnect", "code": 1006})

    @property
    def unread(self) -> int:
        """Frames that the application has not taken yet."""
        return self._to_app.qsize()

    async def next_frame(self) -> bytes | None:
        """Next frame of the application; ``None`` when it closed, see :attr:`close_code`."""
        message = await self._next()
        if message["type"] == "websocket.close":
            self.close_code = message.get("code", 1000)
            return None
        frame: bytes = message["bytes"]
        return frame

    async def wait_ended(self) -> None:
        """Wait until the application is done with the connection; its errors come out here."""
        if self._task is not None:
            await asyncio.wait_for(self._task, WAIT_S)

    async def _next(self) -> Message:
        return await asyncio.wait_for(self._from_app.get(), WAIT_S)

    async def _take(self, message: Message) -> None:
        if message["type"] != "websocket.accept":
            await self._may_send.wait()
        self._from_app.put_nowait(message)
