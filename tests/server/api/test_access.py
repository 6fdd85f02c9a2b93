from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.server_app import ServerApp, server_app
from vramscope_server.api.access import field_names
from vramscope_server.settings import Limits

PATHS = [
    "/api/v1/runs",
    "/api/v1/runs/r",
    "/api/v1/runs/r/series?fields=a",
    "/api/v1/runs/r/steps",
    "/api/v1/runs/r/events",
    "/api/v1/runs/r/commands",
    "/api/v1/runs/r/commands/c",
    "/api/v1/series-names",
    "/api/v1/session",
    "/api/v1/audit",
]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic dTpw"},
        {"authorization": "Bearer "},
        {"cookie": "vramscope_session_8470=wrong"},
        {"cookie": "vramscope_session_8470=test-token"},
    ],
)
def test_nobody_gets_in_without_a_token(tmp_path: Path, headers: dict[str, str]) -> None:
    with server_app(tmp_path, Limits(auth_failures=100)) as server:
        for path in PATHS:
            response = server.client.get(path, headers=headers)
            assert (path, response.status_code) == (path, 401)
            assert response.json()["error"]["code"] == "auth_failed"
            assert response.headers["www-authenticate"] == "Bearer"


def test_a_session_is_no_token(server: ServerApp) -> None:
    cookie = server.client.post("/login", json={"token": "test-token"}).cookies
    session = cookie["vramscope_session_8470"]
    response = server.client.get(
        "/api/v1/runs", headers={"authorization": f"Bearer {session}", "cookie": ""}
    )
    assert response.status_code == 401


def test_an_agents_token_cannot_read(server: ServerApp) -> None:
    agent = server.make_token("agent")
    response = server.client.get("/api/v1/runs", headers={"authorization": f"Bearer {agent}"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")


def test_a_viewers_token_cannot_deliver(server: ServerApp) -> None:
    agent = server.agent()
    agent.token = server.make_token("view")
    with pytest.raises(AssertionError, match="forbidden"):
        agent.open()


def test_an_expired_token_says_so(server: ServerApp) -> None:
    token = server.make_token("view", expires_ns=time.time_ns() - 1)
    response = server.client.get("/api/v1/runs", headers={"authorization": f"Bearer {token}"})
    assert (response.status_code, response.json()["error"]["code"]) == (401, "token_expired")


@pytest.mark.parametrize(
    ("text", "names"), [(None, None), ("", []), ("a", ["a"]), (" a, ,b ,", ["a", "b"])]
)
def test_field_names(text: str | None, names: list[str] | None) -> None:
    assert field_names(text) == names
