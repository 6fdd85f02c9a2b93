"""The server's outer door: what no endpoint has to check for itself.

Refused here, before a handler sees it: a foreign ``Host`` on a loopback server, a foreign
``Origin`` on every websocket and on every request that changes something, and a body that is too
large.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vramscope_protocol.errors import (
    BAD_REQUEST,
    CLOSE_CODES,
    INTERNAL,
    ORIGIN_REFUSED,
    TOO_LARGE,
    VramscopeError,
)
from vramscope_server.auth.origin import check_host, check_origin
from vramscope_server.error_response import error_response
from vramscope_server.settings import Settings

UPLOAD_PATH: Final = "/api/v1/snapshots"
"""Where a snapshot may be put in: the one body that may be large, read piece by piece."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            if scope["type"] == "websocket" or scope["method"] not in _SAFE_METHODS:
                _check_page(headers)
            if scope["type"] == "http":
                _check_body(headers, self._max_body_bytes(scope))
        except VramscopeError as error:
            if scope["type"] == "websocket":
                await _deny_websocket(scope, receive, send, error)
            else:
                await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _max_body_bytes(self, scope: Scope) -> int:
        limits = self._settings.limits
        is_upload = (scope["method"], scope["path"]) == ("POST", UPLOAD_PATH)
        return limits.snapshot_upload_bytes if is_upload else limits.max_body_bytes

    def _check_host(self, headers: Headers) -> None:
        if self._settings.is_loopback:
            check_host(headers.get("host", ""), self._settings.allow_hosts)


def _check_page(headers: Headers) -> None:
    """Refuse what a page of another origin sends.

    Every browser says where such a request comes from, in ``Sec-Fetch-Site`` or ``Origin``. What
    has neither comes from no browser, and no other program sends the user's cookie by accident.
    """
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site in {"same-origin", "none"}:
        return
    if origin is not None:
        check_origin(origin, headers.get("host", ""))
    elif site is not None:
        raise VramscopeError(ORIGIN_REFUSED, "expected a request of a page of this server")


def _check_body(headers: Headers, max_bytes: int) -> None:
    length = headers.get("content-length")
    if length is None:
        # The server reads bodies only with a declared length: nothing of ours streams one up.
        if "transfer-encoding" in headers:
            raise VramscopeError(BAD_REQUEST, "expected a Content-Length, got a chunked body")
        return
    if not length.isdecimal() or int(length) > max_bytes:
        raise VramscopeError(
            TOO_LARGE, f"expected a body of at most {max_bytes} bytes, got {length}"
        )


async def _deny_websocket(
    scope: Scope, receive: Receive, send: Send, error: VramscopeError
) -> None:
    await receive()  # websocket.connect, which has to be taken before it may be answered
    if "websocket.http.response" not in scope.get("extensions", {}):
        code = CLOSE_CODES.get(error.code, CLOSE_CODES[INTERNAL])
        await send({"type": "websocket.close", "code": code, "reason": error.message})
        return

    async def send_denial(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await error_response(error)({**scope, "type": "http"}, receive, send_denial)
