from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.credentials import (
    bearer_token,
    clear_session_cookie,
    client_address,
    offered_token,
    session_cookie,
    set_session_cookie,
)


def connection(
    authorization: str | None = None, scheme: str = "http", host: str = "vramscope.example"
) -> Request:
    headers = [(b"host", host.encode())]
    if authorization is not None:
        headers.append((b"authorization", authorization.encode()))
    return Request(
        {
            "type": "http",
            "scheme": scheme,
            "headers": headers,
            "client": ("10.0.0.9", 5),
            "server": ("127.0.0.1", 80),
            "path": "/",
            "query_string": b"",
        }
    )


@pytest.mark.parametrize("header", ["Bearer abc", "bearer  abc ", "BEARER abc"])
def test_a_bearer_token(header: str) -> None:
    assert bearer_token(connection(header)) == "abc"


def test_no_header_is_no_token() -> None:
    assert bearer_token(connection()) is None


def test_a_websocket_offers_its_token_among_its_subprotocols() -> None:
    def offering(*protocols: str) -> HTTPConnection:
        return HTTPConnection({"type": "websocket", "headers": [], "subprotocols": protocols})

    assert offered_token(offering("vramscope", "vramscope.token.vs_a-B.c")) == "vs_a-B.c"
    assert offered_token(offering("vramscope")) is None
    assert offered_token(connection()) is None


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer  ", "abc", ""])
def test_another_kind_of_authorization_is_refused(header: str) -> None:
    with pytest.raises(VramscopeError, match="expected 'Authorization: Bearer TOKEN'"):
        bearer_token(connection(header))


def test_the_address_of_the_peer() -> None:
    assert client_address(connection()) == "10.0.0.9"
    assert client_address(HTTPConnection({"type": "http", "client": None})) == "unknown"


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie_is_kept_from_scripts_and_from_other_sites(scheme: str, secure: bool) -> None:
    response = Response()
    set_session_cookie(response, connection(scheme=scheme), "s3ss", 60.0)
    parts = {part.strip().lower() for part in response.headers["set-cookie"].split(";")}
    assert {"vramscope_session=s3ss", "httponly", "samesite=strict", "max-age=60"} <= parts
    assert ("secure" in parts) is secure


def test_the_cookie_is_taken_back() -> None:
    response = Response()
    clear_session_cookie(response, connection())
    assert "max-age=0" in response.headers["set-cookie"].lower()


def test_servers_on_two_ports_of_a_host_have_a_cookie_each() -> None:
    names = {session_cookie(connection(host=host)) for host in ("127.0.0.1:8470", "127.0.0.1:9000")}
    assert names == {"vramscope_session_8470", "vramscope_session_9000"}
    assert session_cookie(connection(host="vramscope.example")) == "vramscope_session"
