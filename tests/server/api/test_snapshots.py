from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.history_rig import made_snapshot
from tests.support.server_app import OWNER, TOKEN, ServerApp, server_app
from tests.support.wire_snapshots import wire_snapshot
from vramscope_server.settings import Limits

RUN = "0123456789ab"
RAW = pickle.dumps(made_snapshot(50), protocol=4)
UPLOAD = "/api/v1/snapshots"


@pytest.fixture
def stored(server: ServerApp) -> Iterator[dict[str, Any]]:
    """A snapshot of a run that lives."""
    begin, packed, _ = wire_snapshot(step=7)
    with server.agent() as agent:
        agent.snapshot(begin, packed)
        yield server.get("/api/v1/snapshots/s1")


def upload(server: ServerApp, data: bytes, token: str = TOKEN, **params: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return server.client.post(UPLOAD, content=data, params=params, headers=headers)


def test_the_list_has_the_latest_first(server: ServerApp, stored: dict[str, Any]) -> None:
    put = upload(server, RAW, run="train", rank=0, name="mine.pickle").json()
    found = server.get("/api/v1/runs/train/snapshots")["snapshots"]
    assert {each["id"] for each in found} == {put["id"], "s1"}
    assert found == sorted(found, key=lambda each: -each["taken_ns"])
    server.get_error("/api/v1/runs/nope/snapshots", 404)


def test_the_pickle_is_byte_for_byte_what_the_agent_had(
    server: ServerApp, stored: dict[str, Any]
) -> None:
    _, _, raw = wire_snapshot()
    response = server.client.get("/api/v1/snapshots/s1/pickle", headers=OWNER)
    assert response.status_code == 200
    assert response.content == raw
    assert response.headers["content-length"] == str(len(raw))
    assert response.headers["content-disposition"] == (
        'attachment; filename="snapshot-rank0-step7-s1.pickle"'
    )
    assert pickle.loads(response.content)["segments"]


@pytest.mark.torch
def test_pytorchs_own_viewer_opens_it(server: ServerApp, stored: dict[str, Any]) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    content = server.client.get("/api/v1/snapshots/s1/pickle", headers=OWNER).content
    assert "MemoryViz" in viz.trace_plot(pickle.loads(content))
    assert "400 entries" in viz.trace(pickle.loads(content))


def test_one_that_has_not_arrived_has_no_pickle(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as agent:
        agent.snapshot(begin, packed, pieces=1)
        error = server.get_error("/api/v1/snapshots/s1/pickle", 409)
        assert "has not arrived yet: 1000 of" in error["message"]
    server.get_error("/api/v1/snapshots/nope/pickle", 404)
    server.get_error("/api/v1/snapshots/nope", 404)


@pytest.mark.parametrize("data", [RAW, gzip.compress(RAW)])
def test_a_person_can_put_one_in(server: ServerApp, data: bytes) -> None:
    response = upload(server, data, name="of/my laptop.pickle")
    assert response.status_code == 201
    body = response.json()
    assert (body["run"], body["rank"], body["state"]) == (None, None, "complete")
    pickled = server.client.get(f"/api/v1/snapshots/{body['id']}/pickle", headers=OWNER)
    assert pickled.content == RAW
    assert 'filename="of_my_laptop.pickle"' in pickled.headers["content-disposition"]
    (line,) = server.get("/api/v1/audit")["audit"]
    assert (line["name"], line["command_id"]) == ("snapshot_upload", body["id"])


def test_what_is_no_snapshot_is_not_taken(server: ServerApp) -> None:
    response = upload(server, b"hello", name="x")
    assert response.status_code == 400
    assert "x: expected a memory snapshot" in response.json()["error"]["message"]
    assert upload(server, RAW, run="nope").status_code == 404


def test_one_that_is_too_large_is_not_even_read(tmp_path: Path) -> None:
    with server_app(tmp_path, Limits(snapshot_upload_bytes=1000)) as server:
        response = upload(server, bytes(1001))
        assert response.status_code == 413
        assert "at most 1000 bytes" in response.json()["error"]["message"]


def test_a_deleted_one_is_gone(server: ServerApp, stored: dict[str, Any]) -> None:
    path = "/api/v1/snapshots/s1"
    assert server.client.delete(path, headers=OWNER).status_code == 204
    assert server.client.delete(path, headers=OWNER).status_code == 404
    server.get_error(path, 404)
    assert server.get("/api/v1/audit")["audit"][0]["name"] == "snapshot_delete"


def test_who_only_looks_may_not_change_anything(server: ServerApp, stored: dict[str, Any]) -> None:
    token = server.make_token("view")
    headers = {"authorization": f"Bearer {token}"}
    assert server.client.get("/api/v1/snapshots/s1/pickle", headers=headers).status_code == 200
    assert server.client.delete("/api/v1/snapshots/s1", headers=headers).status_code == 403
    assert upload(server, RAW, token).status_code == 403
    assert server.client.get("/api/v1/snapshots/s1").status_code == 401


def test_a_frame_sees_the_snapshots_of_its_run_alone(
    server: ServerApp, stored: dict[str, Any]
) -> None:
    with server.agent(run="other", run_id="bbbbbbbbbbbb") as agent:
        begin, packed, _ = wire_snapshot("s2")
        agent.snapshot(begin, packed)
        frame = server.post("/api/v1/runs/train/frames", {}).json()
    headers = {"authorization": f"Bearer {frame['token']}"}

    def status(path: str) -> int:
        return int(server.client.get(f"/api/v1/{path}", headers=headers).status_code)

    assert status(f"runs/{RUN}/snapshots") == 200
    assert status("snapshots/s1") == 200
    assert status("snapshots/s1/pickle") == 200
    assert status("snapshots/s2") == 403
    assert status("snapshots/nope") == 403
    assert upload(server, RAW, frame["token"]).status_code == 403


def test_who_looks_is_told_when_one_comes_and_goes(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as agent, server.live() as page:
        page.ask("subscribe_run", run="train", fields=[])
        agent.snapshot(begin, packed)
        event = page.wait_event("snapshot", lambda e: e["snapshot"]["state"] == "complete")
        assert event["snapshot"] == server.get("/api/v1/snapshots/s1")
        server.client.delete("/api/v1/snapshots/s1", headers=OWNER)
        page.wait_event("snapshot", lambda e: e["snapshot"]["state"] == "deleted")


@pytest.mark.parametrize("wrong", [{"rank": 2**63}, {"rank": 10**30}, {"name": "a\0b"}])
def test_what_no_database_can_hold_is_said_at_once(
    server: ServerApp, wrong: dict[str, Any]
) -> None:
    assert upload(server, RAW, **wrong).status_code == 422
