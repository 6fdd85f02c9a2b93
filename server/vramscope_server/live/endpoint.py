"""``/ws/live``: one browser connection from its handshake to its last frame."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from vramscope_protocol.errors import (
    CLOSE_CODES,
    INTERNAL,
    RATE_LIMITED,
    SHUTTING_DOWN,
    ProtocolError,
    VramscopeError,
)
from vramscope_protocol.live import LiveHello, encode_live
from vramscope_protocol.version import PROTOCOL_VERSION, SERVER_FEATURES
from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.auth.credentials import LIVE_PROTOCOL, client_address, identify
from vramscope_server.auth.principal import VIEW, Principal
from vramscope_server.live.connection import LiveConnection
from vramscope_server.live.hub import Hub
from vramscope_server.live.session import LiveSession, RunFinder
from vramscope_server.maps.maps import Maps
from vramscope_server.settings import Limits
from vramscope_server.version import server_software

_logger = logging.getLogger("vramscope.live")

_MAX_REASON_BYTES: Final = 123
"""A close frame carries at most 125 bytes, two of them the code."""


class LiveEndpoint:
    """ASGI application for the browsers' websocket."""

    def __init__(
        self,
        hub: Hub,
        registry: RunFinder,
        authenticator: Authenticator,
        limits: Limits,
        maps: Maps,
    ) -> None:
        self._hub = hub
        self._registry = registry
        self._authenticator = authenticator
        self._limits = limits
        self._maps = maps
        self._connections: set[LiveConnection] = set()
        self._open = 0
        self._shutting_down = False

    @property
    def connection_count(self) -> int:
        """Browsers connected now."""
        return len(self._connections)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until either side ends it."""
        websocket = WebSocket(scope, receive, send)
        # Accepted before it is judged: a page can read a close code, not a failed handshake.
        offered: list[str] = scope.get("subprotocols", [])
        await websocket.accept(LIVE_PROTOCOL if LIVE_PROTOCOL in offered else None)
        self._open += 1
        try:
            self._check_room()
            principal = await identify(websocket, self._authenticator)
            principal.require(VIEW)
            await self._serve(websocket, principal)
        except WebSocketDisconnect:
            return
        except VramscopeError as error:
            _logger.info("closing %s: %s", client_address(websocket), error.message)
            await self._close(websocket, error)
        finally:
            self._open -= 1

    async def shut_down(self) -> None:
        """Refuse new browsers, tell the others, and wait for them within ``live_close_s``."""
        self._shutting_down = True
        for connection in tuple(self._connections):
            connection.fail(ProtocolError(SHUTTING_DOWN, "the server is shutting down"))
        deadline_s = time.monotonic() + self._limits.live_close_s
        while self._open and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)

    def _check_room(self) -> None:
        if self._shutting_down:
            raise ProtocolError(SHUTTING_DOWN, "the server is shutting down")
        if len(self._connections) >= self._limits.live_connections:
            raise ProtocolError(
                RATE_LIMITED, f"expected at most {self._limits.live_connections} open pages"
            )

    async def _serve(self, websocket: WebSocket, principal: Principal) -> None:
        async def send_frame(frame: bytes) -> None:
            await websocket.send_text(frame.decode())

        connection = LiveConnection(send_frame, self._limits)
        session = LiveSession(
            self._hub, self._registry, connection.put, self._limits, principal, self._maps
        )
        self._connections.add(connection)
        connection.put(encode_live(_hello(principal)))
        tasks = [
            asyncio.create_task(connection.write()),
            asyncio.create_task(_read(websocket, session)),
            asyncio.create_task(self._watch_rights(websocket)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Nothing is awaited before the connection is out of the books: this may be cancelled.
            session.close()
            self._connections.discard(connection)
            connection.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _watch_rights(self, websocket: WebSocket) -> None:
        """End the connection soon after its token expired or was revoked."""
        while True:
            await asyncio.sleep(self._limits.auth_cache_s)
            principal = await identify(websocket, self._authenticator)
            principal.require(VIEW)

    async def _close(self, websocket: WebSocket, error: VramscopeError) -> None:
        code = CLOSE_CODES.get(error.code, CLOSE_CODES[INTERNAL])
        reason = error.message.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
        try:
            # A reader that was too slow does not take its close frame either: do not wait for it.
            await asyncio.wait_for(websocket.close(code, reason), self._limits.live_close_s)
        except asyncio.TimeoutError:
            _logger.info("%s did not take its close frame", client_address(websocket))
        except (WebSocketDisconnect, RuntimeError):
            _logger.debug("%s was gone before its close frame", client_address(websocket))


def _hello(principal: Principal) -> LiveHello:
    return LiveHello(
        PROTOCOL_VERSION,
        sorted(principal.scopes),
        time.time_ns(),
        server_software(),
        list(SERVER_FEATURES),
    )


async def _read(websocket: WebSocket, session: LiveSession) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000), message.get("reason"))
        frame = message.get("text")
        session.receive(frame if frame is not None else message["bytes"])
