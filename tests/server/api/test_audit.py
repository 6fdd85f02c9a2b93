from __future__ import annotations

from tests.support.server_app import ServerApp

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
