from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from vramscope_server.auth.gate import UPLOAD_PATH, Gate
from vramscope_server.settings import Limits, Settings

COOKIE = {"cookie": "vramscope_session=s"}
BEARER = {"authorization": "Bearer t"}
SELF = {"origin": "http://127.0.0.1:8470"}
EVIL = {"origin": "http://evil.example"}
SOCKET = "ws://127.0.0.1:8470/ws"


async def anything(_request: Request) -> Response:
    return PlainTextResponse("passed")


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.close()


def client(**options: Any) -> TestClient:
    app = Starlette(
        routes=[
            Route("/x", anything, methods=["GET", "POST", "DELETE"]),
            Route(UPLOAD_PATH, anything, methods=["POST", "DELETE"]),
            WebSocketRoute("/ws", socket),
        ]
    )
    settings = Settings(limits=Limits(max_body_bytes=10, snapshot_upload_bytes=100), **options)
    return TestClient(Gate(app, settings), base_url="http://127.0.0.1:8470")


def code(response: Any) -> str:
    found: str = response.json()["error"]["code"]
    return found


def test_a_rebound_name_reaches_nothing() -> None:
    response = client().get("/x", headers={"host": "evil.example:8470"})
    assert (response.status_code, code(response)) == (403, "forbidden")


def test_a_server_on_the_network_is_called_by_any_name() -> None:
    page = client(host="0.0.0.0", token="t")
    assert page.get("/x", headers={"host": "gpu-box.example"}).status_code == 200


def test_an_allowed_name_passes() -> None:
    page = client(allow_hosts=("gpu-box.example",))
    assert page.get("/x", headers={"host": "gpu-box.example"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        SELF | COOKIE,
        SELF,
        BEARER,
        BEARER | SELF,
        COOKIE | BEARER,
        COOKIE | {"sec-fetch-site": "same-origin"},
        COOKIE | {"sec-fetch-site": "same-origin", "origin": "null"},
        COOKIE,
        {},
    ],
)
def test_changes_by_our_own_page_or_by_a_script_pass(headers: dict[str, str]) -> None:
    assert client().post("/x", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        EVIL | COOKIE,
        EVIL | BEARER,
        EVIL,
        EVIL | COOKIE | {"sec-fetch-site": "cross-site"},
        {"origin": "null"},
        COOKIE | {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        COOKIE | {"origin": "http://127.0.0.1:3000"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_changes_by_another_page_are_refused(method: str, headers: dict[str, str]) -> None:
    response = client().request(method, "/x", headers=headers)
    assert (response.status_code, code(response)) == (403, "origin_refused")


def test_reading_needs_no_origin() -> None:
    assert client().get("/x", headers=COOKIE).status_code == 200


def test_a_body_that_is_too_large_is_refused_unread() -> None:
    page = client()
    assert page.post("/x", content=b"x" * 10).status_code == 200
    response = page.post("/x", content=b"x" * 11)
    assert (response.status_code, code(response)) == (413, "too_large")
    assert "at most 10 bytes, got 11" in response.json()["error"]["message"]


def test_a_body_without_a_length_is_refused() -> None:
    response = client().post("/x", content=iter([b"x"]))
    assert (response.status_code, code(response)) == (400, "bad_request")


@pytest.mark.parametrize("headers", [SELF | COOKIE, BEARER, COOKIE, {}])
def test_websockets_of_our_page_and_of_agents_pass(headers: dict[str, str]) -> None:
    with client().websocket_connect(SOCKET, headers=headers) as websocket:
        assert websocket.receive()["type"] == "websocket.close"


@pytest.mark.parametrize("headers", [EVIL | COOKIE, EVIL | BEARER, {"origin": "null"}])
def test_websockets_of_another_page_are_refused_before_they_open(headers: dict[str, str]) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client().websocket_connect(SOCKET, headers=headers),
    ):
        pass
    assert refused.value.status_code == 403
    assert code(refused.value) == "origin_refused"


def test_websockets_under_a_rebound_name_are_refused() -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client().websocket_connect(SOCKET, headers={"host": "evil.example"}),
    ):
        pass
    assert code(refused.value) == "forbidden"


def test_only_where_a_snapshot_is_put_in_a_body_may_be_large() -> None:
    page = client()
    large: Any = {"content": b"x" * 11, "headers": BEARER}
    assert page.post("/x", **large).status_code == 413
    assert page.post(UPLOAD_PATH, **large).status_code == 200
    assert page.request("DELETE", UPLOAD_PATH, **large).status_code == 413
    assert page.post(UPLOAD_PATH, content=b"x" * 101, headers=BEARER).status_code == 413
