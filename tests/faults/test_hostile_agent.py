"""An agent that means harm reaches no other run, and none of what people may do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from tests.support.hostile_words import (
    OTHER,
    RUN,
    hung_up,
    rest_of,
)
from tests.support.made_policies import policy_body
from tests.support.server_app import ServerApp, server_app
from vramscope_protocol.messages import (
    Command,
    Register,
    SnapshotBegin,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerApp]:
    """A server of its own for each test."""
    with server_app(tmp_path) as started:
        yield started


def request(server: ServerApp, method: str, path: str, token: str, **options: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return server.client.request(method, path, headers=headers, **options)


def test_its_token_opens_nothing_but_its_own_websocket(server: ServerApp) -> None:
    token = server.make_token("agent", name="job")
    with server.agent():
        for path in rest_of(server):
            answer = request(server, "GET", path, token)
            # Whoever asks may see the names of series, and who it is itself.
            is_its_own = path in {"/api/v1/session", "/api/v1/series-names"}
            assert answer.status_code in ({200, 403} if is_its_own else {403, 404}), path
            assert "train" not in answer.text.replace("training", ""), path
        attempts = [
            ("POST", f"/api/v1/runs/{RUN}/commands", {"name": "empty_cache"}),
            ("POST", f"/api/v1/runs/{RUN}/commands", {"name": "stats"}),
            ("POST", "/api/v1/policies", policy_body()),
            ("POST", f"/api/v1/runs/{RUN}/frames", {"scopes": ["view"]}),
        ]
        for method, path, body in attempts:
            assert request(server, method, path, token, json=body).status_code == 403, path
        login = server.client.post("/login", json={"token": token})
        socket = server.websocket("/ws/live", authorization=f"Bearer {token}")
        with pytest.raises(WebSocketDisconnect) as closed, socket:
            socket.receive_text()
    assert login.status_code in {200, 204, 403}
    assert closed.value.code == 4403


def test_it_cannot_answer_for_another_run(server: ServerApp) -> None:
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        posted = server.post(f"/api/v1/runs/{RUN}/commands", {"name": "gc_collect"}).json()
        received = victim.wait_command()
        hostile.update(received, "done", message="I did it", returned_bytes=1)
        hostile.wait_acked()
        found = server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")
        assert (found["state"], found["receipts"]) == ("queued", {})
        victim.update(received, "failed", message="It broke.")
        victim.wait_acked()
        found = server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")
        assert found["state"] == "failed"
        assert [each["message"] for each in found["receipts"].values()] == ["It broke."]
        assert server.get(f"/api/v1/runs/{OTHER}/commands")["commands"] == []
        assert hostile.commands == []


def test_it_cannot_answer_for_another_rank(server: ServerApp) -> None:
    with server.agent(world_size=2) as first, server.agent(rank=1, world_size=2) as second:
        body = {"name": "gc_collect", "ranks": [0]}
        posted = server.post(f"/api/v1/runs/{RUN}/commands", body).json()
        received = first.wait_command()
        second.update(received, "done")
        second.wait_acked()
        assert server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")["receipts"] == {}


def test_it_cannot_go_on_with_the_stream_of_another_run(server: ServerApp) -> None:
    with server.agent() as victim:
        victim.samples(3)
        victim.wait_acked()
        before = server.get(f"/api/v1/runs/{RUN}")
        hostile = server.agent(run="other", run_id=OTHER)
        hostile.stream = victim.stream
        with pytest.raises((AssertionError, WebSocketDisconnect)):
            hostile.open()
        victim.samples(1)
        victim.wait_acked()
        after = server.get(f"/api/v1/runs/{RUN}")
    assert after["ranks"][0]["stream"] == before["ranks"][0]["stream"]
    assert after["ranks"][0]["samples_received"] == 4
    assert OTHER not in [run["id"] for run in server.get("/api/v1/runs")]


def test_it_cannot_register_twice_on_one_connection(server: ServerApp) -> None:
    with server.agent() as hostile:
        other = server.agent(run="other", run_id=OTHER)
        hostile.send(Register(other.stream, other.run, other.rank))
        assert hung_up(hostile)
    assert OTHER not in [run["id"] for run in server.get("/api/v1/runs")]


def test_it_cannot_put_its_snapshot_in_the_place_of_another(server: ServerApp) -> None:
    begin = SnapshotBegin("snap", time.time_ns(), 100, 50, "0" * 64)
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        victim.send(begin)
        assert victim.wait_snapshot_ack().refused == ""
        hostile.send(begin)
        assert "belongs to another" in hostile.wait_snapshot_ack().refused
        assert server.get(f"/api/v1/runs/{OTHER}/snapshots")["snapshots"] == []


def test_it_cannot_ask_for_anything(server: ServerApp) -> None:
    """What a server says to agents is no request that an agent can make."""
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        hostile.send(Command("evil", "stop", {}))
        hostile.samples(1)
        hostile.wait_acked()  # an unknown message is passed over
        victim.samples(1)
        victim.wait_acked()
        assert victim.commands == []
    assert server.get("/api/v1/audit")["audit"] == []
