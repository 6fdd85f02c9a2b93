from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server_app import TOKEN, ServerApp

RUN = "0123456789ab"
OTHER = "bbbbbbbbbbbb"


@pytest.fixture
def frame(server: ServerApp) -> Iterator[dict[str, Any]]:
    """A frame of a run that lives, beside another run."""
    with server.agent(run="other", run_id=OTHER), server.agent(run="train", run_id=RUN) as agent:
        agent.samples(3)
        agent.wait_acked()
        response = server.post("/api/v1/runs/train/frames", {})
        assert response.status_code == 201
        yield response.json()


def status(server: ServerApp, frame: dict[str, Any], path: str) -> int:
    headers = {"authorization": f"Bearer {frame['token']}"}
    return int(server.client.get(path, headers=headers).status_code)


def test_what_is_made_says_where_and_how_long(frame: dict[str, Any]) -> None:
    assert frame["path"] == f"/frame/{RUN}"
    assert frame["scopes"] == ["control", "view"]
    assert 11.5 * 3600 < (frame["expires_ns"] - time.time_ns()) / 1e9 <= 12 * 3600


def test_it_sees_all_of_its_run(server: ServerApp, frame: dict[str, Any]) -> None:
    run = f"/api/v1/runs/{RUN}"
    paths = [run, f"{run}/series?fields=step&rank=0", f"{run}/steps?rank=0", f"{run}/events"]
    paths += [f"{run}/commands", "/api/v1/runs/train", "/api/v1/session", "/api/v1/series-names"]
    assert {path: status(server, frame, path) for path in paths} == dict.fromkeys(paths, 200)


def test_it_sees_nothing_else(server: ServerApp, frame: dict[str, Any]) -> None:
    paths = ["/api/v1/runs", "/api/v1/audit", f"/api/v1/runs/{OTHER}", "/api/v1/runs/other"]
    paths += ["/api/v1/runs/nope", f"/api/v1/runs/{OTHER}/events"]
    assert {path: status(server, frame, path) for path in paths} == dict.fromkeys(paths, 403)


def test_every_address_of_the_api_is_closed_to_it_unless_it_names_a_run(
    server: ServerApp, frame: dict[str, Any]
) -> None:
    described = server.client.get("/openapi.json").json()["paths"]
    without_run = [
        path
        for path, methods in described.items()
        if path.startswith("/api/") and "{run}" not in path and "get" in methods
    ]
    assert "/api/v1/runs" in without_run
    statuses = {path: status(server, frame, path) for path in without_run}
    open_ones = {path for path, code in statuses.items() if code != 403}
    assert open_ones == {"/api/v1/session", "/api/v1/series-names"}


def test_it_commands_its_run_and_no_other(server: ServerApp, frame: dict[str, Any]) -> None:
    body = {"name": "empty_cache", "dry_run": True}
    own = server.post(f"/api/v1/runs/{RUN}/commands", body, token=frame["token"])
    assert own.status_code == 202
    other = server.post(f"/api/v1/runs/{OTHER}/commands", body, token=frame["token"])
    assert other.status_code == 403


def test_it_may_be_made_to_look_only(server: ServerApp, frame: dict[str, Any]) -> None:
    made = server.post(f"/api/v1/runs/{RUN}/frames", {"scopes": ["view"]}).json()
    assert made["scopes"] == ["view"]
    body = {"name": "empty_cache"}
    refused = server.post(f"/api/v1/runs/{RUN}/commands", body, token=made["token"])
    assert refused.status_code == 403


def test_it_delivers_nothing_and_signs_nobody_in(server: ServerApp, frame: dict[str, Any]) -> None:
    signed_in = server.client.post("/login", json={"token": frame["token"]})
    assert signed_in.status_code == 403
    assert "set-cookie" not in server.client.get("/", params={"token": frame["token"]}).headers
    agent = server.agent(run_id=RUN)
    agent.token = frame["token"]
    with pytest.raises(AssertionError, match="forbidden"):
        agent.open()


@pytest.mark.parametrize(
    ("token", "run", "body", "expected"),
    [
        ("frame", RUN, {}, 403),
        ("agent", RUN, {}, 403),
        (TOKEN, "nope", {}, 404),
        (TOKEN, RUN, {"scopes": ["agent"]}, 422),
        (TOKEN, RUN, {"run": "x"}, 422),
    ],
)
def test_what_makes_none(
    server: ServerApp,
    frame: dict[str, Any],
    token: str,
    run: str,
    body: dict[str, Any],
    expected: int,
) -> None:
    secrets = {"frame": frame["token"], "agent": server.make_token("agent")}
    response = server.post(f"/api/v1/runs/{run}/frames", body, secrets.get(token, token))
    assert response.status_code == expected
