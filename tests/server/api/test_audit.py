from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.server_app import OWNER, ServerApp
from vramscope_server.api import audit as audit_api

COMMANDS = "/api/v1/runs/train/commands"


def test_who_what_when_and_what_came_of_it(server: ServerApp) -> None:
    with server.agent() as agent:
        server.post(COMMANDS, {"name": "gc_collect", "id": "c1"}, **{"x-vramscope-origin": "cli"})
        (row,) = server.get("/api/v1/audit")["audit"]
        assert row["result"] == "accepted"
        agent.update(agent.wait_command(), "failed", message="it broke")
        server.wait_until(lambda: "failed" in server.get("/api/v1/audit")["audit"][0]["result"])
        (row,) = server.get("/api/v1/audit", run="train")["audit"]
    assert (row["who"], row["origin"], row["address"]) == ("owner", "cli", "testclient")
    assert (row["command_id"], row["name"], row["ranks"]) == ("c1", "gc_collect", [0])
    assert (row["run"], row["dry_run"], row["params"]) == ("0123456789ab", False, {})
    assert row["result"] == "failed: gc_collect failed on rank 0: it broke"
    assert server.get("/api/v1/audit", run="unheard-of")["audit"] == []


def test_an_attempt_without_the_right_is_written_down(server: ServerApp) -> None:
    viewer = server.make_token("view", name="guest")
    with server.agent():
        server.post(COMMANDS, {"name": "empty_cache", "ranks": [0]}, viewer)
    (row,) = server.get("/api/v1/audit")["audit"]
    assert (row["who"], row["name"]) == ("guest", "empty_cache")
    assert row["result"].startswith("refused: expected a token with the scope 'control'")


def test_viewers_do_not_see_it(server: ServerApp) -> None:
    viewer = server.make_token("view")
    response = server.client.get("/api/v1/audit", headers={"authorization": f"Bearer {viewer}"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")


def test_pages_and_filters(server: ServerApp) -> None:
    with server.agent(), server.agent(run="other", run_id="ffffffffffff"):
        for number in range(5):
            run = "other" if number == 3 else "train"
            server.post(f"/api/v1/runs/{run}/commands", {"name": "stats", "id": f"c{number}"})
    first = server.get("/api/v1/audit", limit=2)
    assert [row["command_id"] for row in first["audit"]] == ["c4", "c3"]
    second = server.get("/api/v1/audit", limit=3, before=first["next"])
    assert [row["command_id"] for row in second["audit"]] == ["c2", "c1", "c0"]
    assert second["next"] is None
    (other,) = server.get("/api/v1/audit", run="other")["audit"]
    assert (other["command_id"], other["run_name"]) == ("c3", "other")
    assert server.get("/api/v1/audit", run="ffffffffffff")["audit"] == [other]
    since = server.get("/api/v1/audit", since_ns=other["time_ns"], command="stats", who="owner")
    assert [row["command_id"] for row in since["audit"]] == ["c4", "c3"]
    until = server.get("/api/v1/audit", until_ns=other["time_ns"])
    assert [row["command_id"] for row in until["audit"]] == ["c2", "c1", "c0"]
    assert "before: expected" in server.get_error("/api/v1/audit", 422, before=-1)["message"]


def test_all_of_it_as_a_file(server: ServerApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_api, "_PAGE_ROWS", 2)
    viewer = server.make_token("view", name="=cmd|' /C calc'!A0")
    with server.agent():
        for number in range(4):
            server.post(COMMANDS, {"name": "stats", "id": f"c{number}"})
        server.post(COMMANDS, {"name": "empty_cache", "id": "c4"}, viewer)
    response = server.client.get("/api/v1/audit?format=csv&run=train", headers=OWNER)
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="vramscope-audit.csv"' in response.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["command_id"] for row in rows] == ["c4", "c3", "c2", "c1", "c0"]
    assert rows[0]["who"] == "'=cmd|' /C calc'!A0"
    lines = server.client.get("/api/v1/audit?format=jsonl&who=owner", headers=OWNER)
    assert lines.headers["content-type"] == "application/x-ndjson"
    found = [json.loads(line) for line in lines.text.splitlines()]
    assert [row["command_id"] for row in found] == ["c3", "c2", "c1", "c0"]
    assert {row["run_name"] for row in found} == {"train"}
    assert (
        server.client.get("/api/v1/audit?format=csv&who=nobody", headers=OWNER).text.count("\n")
        == 1
    )


def test_viewers_cannot_take_it_away_and_are_told_how_to(server: ServerApp) -> None:
    viewer = server.make_token("view")
    response = server.client.get(
        "/api/v1/audit?format=csv", headers={"authorization": f"Bearer {viewer}"}
    )
    assert response.status_code == 403
    message = response.json()["error"]["message"]
    assert "expected a token with the scope 'control', got view" in message
    assert "vramscope token create --scope view,control" in message
