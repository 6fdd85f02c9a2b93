from __future__ import annotations

import time
from typing import Any

from tests.support.scripted_agent import GIB, ScriptedAgent
from tests.support.server_app import OWNER, ServerApp
from vramscope_protocol.user_commands import UserCommand, UserParam

PATH = "/api/v1/runs/train/commands"
WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"name": "format_disk"}, 400, "expected one of: clear_cublas_workspaces"),
    ({"name": "gc_collect", "ranks": [5]}, 400, "some of the ranks 0, got 5"),
    ({"name": "gc_collect", "params": {"x": 1}}, 400, "parameters of gc_collect"),
    ({"name": "gc_collect", "dry_run": True}, 400, "has no dry run"),
    ({"name": "gc_collect", "deadline_s": -1}, 400, "deadline_s: expected"),
    ({"name": "gc_collect", "dry_run": "yes"}, 422, "dry_run: expected a valid boolean"),
    ({"name": "gc_collect", "rank": 0}, 422, "rank: expected"),
    ({}, 422, "name: expected a value, got none"),
]


def command(server: ServerApp, command_id: str, state: str) -> dict[str, Any]:
    """The command, once it is in ``state``."""

    def probe() -> dict[str, Any] | None:
        found: dict[str, Any] = server.get(f"{PATH}/{command_id}")
        return found if found["state"] == state else None

    found = server.wait_until(probe)
    assert found is not None
    return found


def test_from_the_post_to_the_receipt(server: ServerApp) -> None:
    with server.agent() as agent:
        response = server.post(PATH, {"name": "empty_cache", "deadline_s": 20})
        assert response.status_code == 202
        posted = response.json()
        assert posted["state"] == "queued"

        received = agent.wait_command()
        assert (received.id, received.name, received.dry_run) == (
            posted["id"],
            "empty_cache",
            False,
        )
        assert 0 < received.deadline_s <= 20
        assert received.issued_by == "owner"
        agent.update(received, "running")
        command(server, posted["id"], "running")
        agent.update(
            received,
            "done",
            step=12,
            before={"reserved_bytes": 3 * GIB},
            after={"reserved_bytes": GIB},
            returned_bytes=2 * GIB,
            took_s=0.01,
            message="Returned 2.0 GiB.",
        )
        done = command(server, posted["id"], "done")
        agent.wait_acked()

    receipt = done["receipts"]["0"]
    assert (receipt["state"], receipt["step"], receipt["took_s"]) == ("done", 12, 0.01)
    assert receipt["before"] == {"reserved_bytes": 3 * GIB}
    assert receipt["returned_bytes"] == 2 * GIB
    assert done["finished_ns"] >= done["created_ns"]
    assert [entry["id"] for entry in server.get(PATH)["commands"]] == [posted["id"]]
    (event,) = server.wait_until(
        lambda: server.get("/api/v1/runs/train/events", kind="command")["events"]
    )
    assert event["text"] == "empty_cache returned 2.0 GiB on rank 0"
    assert event["data"]["command_id"] == posted["id"]


def test_every_rank_has_to_be_done(server: ServerApp) -> None:
    first, second = (server.agent(rank=rank, world_size=2) for rank in (0, 1))
    with first, second:
        posted = server.post(PATH, {"name": "gc_collect", "ranks": "all"}).json()
        assert posted["ranks"] == [0, 1]
        first.update(first.wait_command(), "done")
        server.wait_until(lambda: server.get(f"{PATH}/{posted['id']}")["receipts"].get("0"))
        assert server.get(f"{PATH}/{posted['id']}")["state"] == "queued"
        second.update(second.wait_command(), "refused", message="not now")
        assert command(server, posted["id"], "refused")["receipts"]["1"]["message"] == "not now"


def test_the_same_id_runs_once(server: ServerApp) -> None:
    body = {"name": "gc_collect", "id": "mine"}
    with server.agent() as agent:
        assert server.post(PATH, body).status_code == 202
        agent.update(agent.wait_command(), "done")
        command(server, "mine", "done")
        again = server.post(PATH, body)
        assert (again.status_code, again.json()["state"]) == (202, "done")
        other = server.post(PATH, {"name": "empty_cache", "id": "mine"})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        # Nothing more reached the agent: the next command that does is a new one.
        server.post(PATH, {"name": "stats", "id": "next"})
        assert agent.wait_command().id == "next"


def test_a_rank_that_comes_back_in_time_gets_what_waits(server: ServerApp) -> None:
    agent = server.agent()
    with agent:
        agent.samples(1)
        agent.wait_acked()
    server.wait_until(lambda: server.get("/api/v1/runs/train")["ranks_connected"] == 0)
    posted = server.post(PATH, {"name": "gc_collect", "deadline_s": 60}).json()
    assert posted["state"] == "queued"
    with agent:
        received = agent.wait_command()
        assert received.id == posted["id"]
        assert received.deadline_s < 60
        agent.update(received, "done")
        command(server, posted["id"], "done")


def test_a_rank_that_never_comes_lets_it_expire(server: ServerApp) -> None:
    with server.agent():
        pass
    server.wait_until(lambda: server.get("/api/v1/runs/train")["ranks_connected"] == 0)
    posted = server.post(PATH, {"name": "gc_collect", "deadline_s": 0.05}).json()
    expired = command(server, posted["id"], "expired")
    message = expired["receipts"]["0"]["message"]
    assert "was not connected" in message
    assert "Nothing was changed." in message


def test_a_run_that_has_ended_takes_no_command(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.goodbye()
        agent.wait_acked()
    server.wait_until(lambda: server.get("/api/v1/runs/train")["state"] == "ended")
    response = server.post(PATH, {"name": "gc_collect"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "conflict")
    assert "has ended" in response.json()["error"]["message"]


def test_a_wrong_request_reaches_no_rank(server: ServerApp) -> None:
    with server.agent() as agent:
        for body, status, message in WRONG:
            response = server.post(PATH, body)
            assert (body, response.status_code) == (body, status)
            assert message in response.json()["error"]["message"]
        server.post(PATH, {"name": "stats", "id": "the-first"})
        assert agent.wait_command().id == "the-first"


def test_what_is_no_json_is_said(server: ServerApp) -> None:
    for kind in ("application/json", "text/plain"):
        response = server.client.post(PATH, content=b"{", headers={**OWNER, "content-type": kind})
        assert response.status_code == 422
        assert "expected JSON" in response.json()["error"]["message"]


def test_viewers_may_ask_and_not_change(server: ServerApp) -> None:
    viewer = server.make_token("view", name="guest")
    with server.agent() as agent:
        assert server.post(PATH, {"name": "memory_summary"}, viewer).status_code == 202
        assert agent.wait_command().issued_by == "guest"
        refused = server.post(PATH, {"name": "empty_cache"}, viewer)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


def test_an_unknown_command_or_one_of_another_run(server: ServerApp) -> None:
    with server.agent(), server.agent(run="other", run_id="ffffffffffff"):
        server.post(PATH, {"name": "stats", "id": "mine"})
        assert server.get_error(f"{PATH}/none", 404)["code"] == "not_found"
        assert server.get_error("/api/v1/runs/other/commands/mine", 404)["code"] == "not_found"


def test_too_many_at_once(server: ServerApp) -> None:
    with server.agent():
        codes = [server.post(PATH, {"name": "stats"}).status_code for _ in range(25)]
        assert codes[:20] == [202] * 20
        assert codes[-1] == 429
        refused = server.post(PATH, {"name": "stats"})
        assert int(refused.headers["retry-after"]) >= 1


def test_the_way_by_which_it_was_asked_for(server: ServerApp) -> None:
    server.client.post("/login", json={"token": "test-token"})
    with server.agent() as agent:
        origins = [
            server.post(PATH, {"name": "stats"}).json()["origin"],
            server.post(PATH, {"name": "stats"}, **{"x-vramscope-origin": "cli"}).json()["origin"],
            server.client.post(
                PATH, json={"name": "stats"}, headers={"origin": "http://127.0.0.1:8470"}
            ).json()["origin"],
        ]
        agent.wait_command()
    assert origins == ["api", "cli", "browser"]


def test_a_restarted_agent_of_the_same_rank_takes_over(server: ServerApp) -> None:
    first: ScriptedAgent = server.agent()
    with first:
        first.samples(1)
        first.wait_acked()
    second = server.agent()
    with second:
        second.samples(1)
        second.wait_acked()
        start = time.monotonic()
        posted = server.post(PATH, {"name": "stats"}).json()
        second.update(second.wait_command(), "done", result={"a": 1})
        assert command(server, posted["id"], "done")["receipts"]["0"]["result"] == {"a": 1}
        assert time.monotonic() - start < 5


def test_two_ranks_agree_on_a_step(server: ServerApp) -> None:
    ranks = [server.agent(rank=rank, world_size=2, steps_from_start=True) for rank in (0, 1)]
    with ranks[0] as first, ranks[1] as second:
        for agent in ranks:
            agent.steps(40, step=1)
            agent.wait_acked()
        body = {"name": "empty_cache", "ranks": "all", "id": "mine"}
        posted = server.post(PATH, body).json()
        assert (posted["state"], posted["note"], posted["agreement"]["decision"]) == (
            "queued", "", None,
        )  # fmt: skip
        asked = [agent.wait_command() for agent in ranks]
        assert asked[0].at_step == asked[1].at_step
        assert (asked[0].at_step or 0) > 40
        first.prepared(asked[0])
        shown = command(server, "mine", "prepared")
        assert (shown["agreement"]["prepared"], len(shown["ranks"])) == (1, 2)
        # The other one is cut off, comes back, and is asked again.
        second.reconnect()
        asked[1] = second.wait_command()
        assert server.post(PATH, body).json()["state"] == "prepared"
        second.prepared(asked[1])
        for agent in ranks:
            decision = agent.wait_decision()
            assert (decision.id, decision.at_step, decision.run) == ("mine", asked[0].at_step, True)
            agent.update(asked[0], "done", step=asked[0].at_step)
        done = command(server, "mine", "done")
        assert {receipt["step"] for receipt in done["receipts"].values()} == {asked[0].at_step}


def test_what_is_for_the_whole_run_needs_every_rank(server: ServerApp) -> None:
    ranks = [server.agent(rank=rank, world_size=3, steps_from_start=True) for rank in (0, 1)]
    with ranks[0], ranks[1]:
        part = server.post(PATH, {"name": "pause", "ranks": [0]})
        assert part.status_code == 400
        assert "expected 'all', because pause is for a run" in part.json()["error"]["message"]
        missing = server.post(PATH, {"name": "pause"})
        assert (missing.status_code, missing.json()["error"]["code"]) == (409, "conflict")
        assert "expected 3, got 2" in missing.json()["error"]["message"]
    assert [row["result"] for row in server.get("/api/v1/audit")["audit"]] == []


def test_ranks_that_count_their_own_steps_run_what_is_harmless_and_say_so(
    server: ServerApp,
) -> None:
    ranks = [server.agent(rank=rank, world_size=2) for rank in (0, 1)]
    with ranks[0], ranks[1]:
        posted = server.post(PATH, {"name": "empty_cache"}).json()
        assert posted["agreement"] is None
        assert posted["note"].startswith("Each rank runs it at the end of its own next step")
        assert [agent.wait_command().at_step for agent in ranks] == [None, None]
        refused = server.post(PATH, {"name": "stop"})
        assert refused.status_code == 409
        assert "not counted from the begin of training" in refused.json()["error"]["message"]


def test_a_command_of_the_job_is_shown_checked_and_sent(server: ServerApp) -> None:
    declared = [UserCommand("user.set_lr", params=[UserParam("lr", "float", least=0.0)])]
    with server.agent(user_commands=declared) as agent:
        (rank,) = server.get("/api/v1/runs/train")["ranks"]
        assert [each["name"] for each in rank["user_commands"]] == ["user.set_lr"]
        wrong = server.post(PATH, {"name": "user.set_lr", "params": {"lr": -1}})
        assert wrong.status_code == 400
        assert "lr: expected at least 0" in wrong.json()["error"]["message"]
        server.post(PATH, {"name": "user.set_lr", "params": {"lr": 1}, "id": "mine"})
        received = agent.wait_command()
        assert (received.name, received.params) == ("user.set_lr", {"lr": 1.0})
        agent.update(received, "done", result=1.0)
        assert command(server, "mine", "done")["receipts"]["0"]["result"] == 1.0
        viewer = server.make_token("view")
        assert (
            server.post(PATH, {"name": "user.set_lr", "params": {"lr": 1}}, viewer).status_code
            == 403
        )
