from __future__ import annotations

from tests.support.server_app import ServerApp


def test_no_run_yet(server: ServerApp) -> None:
    assert server.get("/api/v1/runs") == []


def test_a_run_is_listed_and_found_by_id_and_by_name(server: ServerApp) -> None:
    with server.agent(run="train", run_id="0123456789ab") as agent:
        agent.samples(3)
        agent.wait_acked()
        (listed,) = server.get("/api/v1/runs")
        by_id = server.get("/api/v1/runs/0123456789ab")
        by_name = server.get("/api/v1/runs/train")
    assert (listed["id"], listed["name"], listed["state"]) == ("0123456789ab", "train", "live")
    assert "ranks" not in listed
    assert by_id["id"] == by_name["id"] == listed["id"]
    (rank,) = by_id["ranks"]
    assert (rank["rank"], rank["state"], rank["samples_received"]) == (0, "live", 3)


def test_the_latest_run_of_a_name_is_meant(server: ServerApp) -> None:
    for run_id in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        with server.agent(run="train", run_id=run_id):
            pass
    assert server.get("/api/v1/runs/train")["id"] == "bbbbbbbbbbbb"


def test_an_unknown_run(server: ServerApp) -> None:
    error = server.get_error("/api/v1/runs/nope", 404)
    assert error["code"] == "not_found"
    assert "'nope'" in error["message"]
