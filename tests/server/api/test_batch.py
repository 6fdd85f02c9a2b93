from __future__ import annotations

from typing import Any

from tests.support.batch_server import PATH, answer, can_resize, peak, train
from tests.support.scripted_agent import GIB
from tests.support.server_app import OWNER, ServerApp


def test_the_advice_comes_with_its_range_and_what_it_rests_on(server: ServerApp) -> None:
    with server.agent() as agent:
        train(agent, [8] * 12 + [40] * 8)
        found = server.get(PATH)
    advice = found["advice"]
    truth = int((0.95 * 8 * GIB - 1.5 * GIB) // (100 << 20))
    assert advice["low"] <= advice["batch_size"] <= truth <= advice["high"]
    assert advice["batch_size"] >= 0.85 * truth
    assert peak(advice["batch_size"]) <= advice["peak_bytes"] <= advice["allowed_bytes"]
    assert (advice["current"], advice["gain"]) == (40, advice["batch_size"] - 40)
    assert f"{advice['batch_size']} (range" in advice["sentence"]
    assert [each["batch_size"] for each in advice["ranks"][0]["tried"]] == [8, 40]
    assert advice["params"] == {
        "batch_size": advice["batch_size"],
        "change_global_batch": True,
    }
    assert found["silent"] is None


def test_more_head_room_leaves_less(server: ServerApp) -> None:
    with server.agent() as agent:
        train(agent, [8] * 12)
        sizes = [server.get(PATH, head_room=h)["advice"]["batch_size"] for h in (0.0, 0.05, 0.3)]
        server.get_error(PATH, 422, head_room=0.9)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_silence_has_a_reason(server: ServerApp) -> None:
    with server.agent() as agent:
        assert server.get(PATH)["silent"]["reason"] == "no_steps"
        agent.steps(12)
        agent.wait_acked()
        # On a busy machine the answer took long, and is kept for twenty times as long.
        server.wait_until(
            lambda: server.get(PATH)["silent"]["reason"] == "no_batch", timeout_s=60.0
        )
        found = server.get(PATH)
    assert "vramscope.log(batch_size=...)" in found["silent"]["text"]
    assert (found["advice"], found["probe"], found["probing"]) == (None, None, None)
    server.get_error("/api/v1/runs/nothing/batch", 404)


def test_the_fullest_rank_decides(server: ServerApp) -> None:
    with server.agent(world_size=2) as first, server.agent(rank=1, world_size=2) as second:
        train(first, [8] * 12)
        second.event("outside", parts=[{"name": "NCCL", "bytes": 2 * GIB}])
        train(second, [8] * 12)
        advice = server.get(PATH)["advice"]
    assert advice["deciding_rank"] == 1
    assert advice["gain"] == 2 * (advice["batch_size"] - 8)


def posted(server: ServerApp, size: int, token: str | None = None) -> Any:
    options = {} if token is None else {"token": token}
    return server.post(f"{PATH}/probe", {"batch_size": size}, **options)


def test_a_probe_is_a_dry_run_then_there_and_back(server: ServerApp) -> None:
    with can_resize(server.agent()) as agent:
        step = train(agent, [8] * 12)
        offered = server.get(PATH)["probe"]
        assert (offered["batch_size"], offered["back"]) == (16, 8)
        assert posted(server, 16).status_code == 202
        asked = [answer(agent), answer(agent)]
        assert [each.dry_run for each in asked] == [True, False]
        assert all(each.params == offered["params"] for each in asked)
        train(agent, [16] * 5, step)
        back = answer(agent)
        assert back.params["batch_size"] == 8
        found = server.wait_until(
            lambda: (p := server.get(PATH))["probing"]["state"] == "done" and p
        )
    assert [each["batch_size"] for each in found["advice"]["ranks"][0]["tried"]] == [8, 16]
    audit = server.get("/api/v1/audit")["audit"]
    assert [line["name"] for line in audit].count("set_batch_size") == 3
    assert {line["who"] for line in audit if line["name"] == "set_batch_size"} == {"owner"}


def test_a_probe_needs_the_right_and_a_size_that_is_advised(server: ServerApp) -> None:
    with can_resize(server.agent()) as agent:
        train(agent, [8] * 12)
        assert posted(server, 16, server.make_token("view")).status_code == 403
        assert posted(server, 17).status_code == 409
        assert posted(server, 0).status_code == 422
        assert not agent.commands


def test_a_probe_that_is_ended_goes_back_at_once(server: ServerApp) -> None:
    with can_resize(server.agent()) as agent:
        train(agent, [8] * 12)
        assert server.client.delete(f"{PATH}/probe", headers=OWNER).status_code == 404
        posted(server, 16)
        answer(agent)
        answer(agent)
        server.wait_until(lambda: server.get(PATH)["probing"]["state"] == "watching")
        assert posted(server, 16).status_code == 409
        assert server.client.delete(f"{PATH}/probe", headers=OWNER).status_code == 200
        assert answer(agent).params["batch_size"] == 8
        server.wait_until(lambda: server.get(PATH)["probing"]["state"] == "done")


def test_a_size_that_memory_ran_out_with_is_not_advised_again(server: ServerApp) -> None:
    with can_resize(server.agent()) as agent:
        train(agent, [8] * 12)
        assert server.get(PATH)["advice"]["batch_size"] > 20
        body = {"name": "set_batch_size", "params": {"batch_size": 20}}
        server.post("/api/v1/runs/train/commands", body)
        agent.update(agent.wait_command(), "failed", result={"ran_out": True})
        found = server.wait_until(
            lambda: (a := server.get(PATH)["advice"])["batch_size"] < 20 and a
        )
    assert found["high"] == 19
    assert "With 20 samples memory ran out." in found["basis"]
