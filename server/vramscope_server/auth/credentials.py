"""What a request carries to say who it is: a bearer token, or the session cookie."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_server.auth.authenticator import Authenticator
from vramscope_server.auth.principal import Principal

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


async def identify(connection: HTTPConnection, authenticator: Authenticator) -> Principal:
    """Who sent a request.

    Raises:
        VramscopeError: ``auth_failed``, ``token_expired`` or ``rate_limited``.
    """
    token = bearer_token(connection)
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
