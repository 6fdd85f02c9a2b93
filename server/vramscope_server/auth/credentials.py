"""What a request carries to say who it is: a bearer token, or the session cookie.

A websocket of a page cannot have an ``Authorization`` header. A page in a frame, which has no
cookie either, names its token as one of the subprotocols that it offers.
"""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.auth.principal import Principal

LIVE_PROTOCOL: Final = "vramscope"
"""Subprotocol of the live feed, which a browser that offers any expects to be chosen."""

_TOKEN_PROTOCOL: Final = "vramscope.token."
_COOKIE: Final = "vramscope_session"


def session_cookie(connection: HTTPConnection) -> str:
    """Name of the cookie: with the port, since browsers share cookies between the ports of a host.

    Without it two servers on one machine would sign each other's pages out.
    """
    port = connection.url.port
    return _COOKIE if port is None else f"{_COOKIE}_{port}"


def client_address(connection: HTTPConnection) -> str:
    """Address of the peer, without the port."""
    return connection.client.host if connection.client is not None else "unknown"


def bearer_token(connection: HTTPConnection) -> str | None:
    """Token of the ``Authorization`` header.

    Raises:
        VramscopeError: ``auth_failed`` for another kind of ``Authorization``.
    """
    header = connection.headers.get("authorization")
    if header is None:
        return None
    kind, _, token = header.partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise VramscopeError(AUTH_FAILED, "expected 'Authorization: Bearer TOKEN'")
    return token.strip()


def offered_token(connection: HTTPConnection) -> str | None:
    """Token among the subprotocols that a websocket offers."""
    offered: list[str] = connection.scope.get("subprotocols", [])
    for protocol in offered:
        if protocol.startswith(_TOKEN_PROTOCOL):
            return protocol.removeprefix(_TOKEN_PROTOCOL)
    return None


async def identify(connection: HTTPConnection, authenticator: Authenticator) -> Principal:
    """Who sent a request.

    Raises:
        VramscopeError: ``auth_failed``, ``token_expired`` or ``rate_limited``.
    """
    # The cookie comes last: a page in a frame must not act with the rights of who looks at it.
    token = bearer_token(connection)
    if token is None:
        token = offered_token(connection)
    if token is not None:
        return await authenticator.verify_token(token, client_address(connection))
    session = connection.cookies.get(session_cookie(connection))
    if not session:
        raise VramscopeError(
            AUTH_FAILED, "expected 'Authorization: Bearer TOKEN' or the cookie of a signed-in page"
        )
    return await authenticator.verify_session(session)


def set_session_cookie(
    response: Response, request: Request, session: str, max_age_s: float
) -> None:
    """Hand the browser its session: no script can read it, no other site can make it be sent."""
    response.set_cookie(
        session_cookie(request),
        session,
        max_age=int(max_age_s),
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def clear_session_cookie(response: Response, request: Request) -> None:
    """Make the browser forget its session."""
    name = session_cookie(request)
    response.delete_cookie(name, path="/", httponly=True, samesite="strict")
