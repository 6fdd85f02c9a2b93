from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.server_app import OWNER, TOKEN, ServerApp, server_app
from vramscope_server.settings import Limits
from vramscope_server.version import server_version

SELF = {"origin": "http://127.0.0.1:8470"}

COOKIE = "vramscope_session_8470"


def test_what_the_caller_may_do(server: ServerApp) -> None:
    body = server.get("/api/v1/session")
    assert (body["scopes"], body["name"]) == (["agent", "control", "view"], "owner")
    assert body["server"]["version"] == server_version()
    assert body["server"]["host"] == "127.0.0.1"
    assert body["server"]["found_by_jobs"] is True
    assert body["server"]["attach_list"] is False
    viewer = server.make_token("view", name="guest")
    mine = server.client.get("/api/v1/session", headers={"authorization": f"Bearer {viewer}"})
    assert (mine.json()["scopes"], mine.json()["name"]) == (["view"], "guest")


def test_a_script_signs_in_by_json(server: ServerApp) -> None:
    response = server.client.post("/login", json={"token": TOKEN})
    assert response.json() == {"scopes": ["agent", "control", "view"], "name": "owner"}
    cookie = response.headers["set-cookie"].lower()
    assert cookie.startswith(f"{COOKIE}=")
    for attribute in ("httponly", "samesite=strict", "path=/", "max-age=2592000"):
        assert attribute in cookie
    assert TOKEN not in response.headers["set-cookie"]
    assert server.client.get("/api/v1/runs").status_code == 200


def test_the_form_of_the_page_signs_in_and_goes_on(server: ServerApp) -> None:
    form = {"token": f" {TOKEN} ", "next": "/runs/r1?x=1"}
    response = server.client.post("/login", data=form, headers=SELF)
    assert (response.status_code, response.headers["location"]) == (303, "/runs/r1?x=1")
    assert server.client.get("/api/v1/runs").status_code == 200


def test_the_form_leads_nowhere_else(server: ServerApp) -> None:
    form = {"token": TOKEN, "next": "//evil.example"}
    assert server.client.post("/login", data=form).headers["location"] == "/"


@pytest.mark.parametrize("token", ["wrong", ""])
def test_a_wrong_token(server: ServerApp, token: str) -> None:
    by_json = server.client.post("/login", json={"token": token})
    assert (by_json.status_code, by_json.json()["error"]["code"]) == (401, "auth_failed")
    by_form = server.client.post("/login", data={"token": token, "next": "/runs/r1"})
    assert by_form.status_code == 401
    assert "text/html" in by_form.headers["content-type"]
    assert 'value="/runs/r1"' in by_form.text
    assert "set-cookie" not in by_json.headers
    assert "set-cookie" not in by_form.headers


def test_an_expired_token(server: ServerApp) -> None:
    token = server.make_token("view", name="old", expires_ns=time.time_ns() - 1)
    response = server.client.post("/login", json={"token": token})
    assert (response.status_code, response.json()["error"]["code"]) == (401, "token_expired")
    assert "'old' has expired" in response.json()["error"]["message"]


def test_signing_in_from_another_page_is_refused(server: ServerApp) -> None:
    response = server.client.post(
        "/login", json={"token": TOKEN}, headers={"origin": "http://evil.example"}
    )
    assert response.json()["error"]["code"] == "origin_refused"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"token": 5}', b"\xff"])
def test_what_is_no_token_at_all(server: ServerApp, body: bytes) -> None:
    response = server.client.post("/login", content=body)
    assert response.status_code == 400
    assert 'expected {"token": "..."}' in response.json()["error"]["message"]


def test_signing_out(server: ServerApp) -> None:
    session = server.client.post("/login", json={"token": TOKEN}).cookies[COOKIE]
    assert server.client.post("/logout", headers=SELF).status_code == 204
    assert server.client.get("/api/v1/runs").status_code == 401
    stolen = server.client.get("/api/v1/runs", headers={"cookie": f"{COOKIE}={session}"})
    assert stolen.status_code == 401


def test_a_session_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    with server_app(tmp_path) as server:
        session = server.client.post("/login", json={"token": TOKEN}).cookies[COOKIE]
    headers = {"cookie": f"{COOKIE}={session}"}
    with server_app(tmp_path) as server:
        assert server.client.get("/api/v1/runs", headers=headers).status_code == 200
    with server_app(tmp_path, token="another") as server:
        response = server.client.get("/api/v1/runs", headers=headers)
        assert response.status_code == 401
        assert "has changed" in response.json()["error"]["message"]


def test_who_guesses_is_slowed_down_and_who_is_signed_in_is_not(tmp_path: Path) -> None:
    with server_app(tmp_path, Limits(auth_failures=2)) as server:
        server.client.post("/login", json={"token": TOKEN})
        codes = [
            server.client.post("/login", json={"token": f"guess {number}"}).status_code
            for number in range(4)
        ]
        assert codes == [401, 401, 429, 429]
        assert server.client.get("/api/v1/runs").status_code == 200
        assert server.client.get("/api/v1/runs", headers=OWNER).status_code == 200
