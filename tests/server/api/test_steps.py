from __future__ import annotations

from tests.support.scripted_agent import RESERVED
from tests.support.server_app import ServerApp

PEAK = "reserved_bytes.all.peak"
PATH = "/api/v1/runs/train/steps"


def test_exact_rows(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.steps(4, step=1, **{RESERVED: [5, 9, 7, 8], PEAK: [6, 7, 11, 9]})
        agent.wait_acked()
        whole = server.get(PATH)
        part = server.get(PATH, start=2, end=3, fields=RESERVED)
        few = server.get(PATH, points=1, fields=RESERVED)
    assert whole["step"] == [1, 2, 3, 4]
    assert whole["columns"][RESERVED] == [5, 9, 7, 8]
    assert (part["step"], part["columns"]) == ([2, 3], {RESERVED: [9, 7]})
    # Of each bin the step with the highest peak is kept, with all its own values.
    assert 7 in few["columns"][RESERVED]


def test_a_restarted_rank_counts_anew_and_its_lives_are_told_apart(server: ServerApp) -> None:
    with server.agent(pid=812) as agent:
        agent.steps(3, step=1, **{RESERVED: [5, 9, 7]})
        agent.wait_acked()
    with server.agent(pid=990) as agent, server.live() as page:
        page.ask("subscribe_run", run="train", fields=[RESERVED])
        agent.steps(2, step=1, **{RESERVED: [1, 2]})
        steps = page.wait_event("steps")
        agent.wait_acked()
        whole = server.get(PATH)
        second = server.get(PATH, life=1, start=2)
        run = server.get("/api/v1/runs/train")
        listed = server.get("/api/v1/runs")
    assert (steps["life"], steps["step_offset"]) == (1, 3)
    assert (whole["step"], whole["life"]) == ([1, 2, 3, 1, 2], [0, 0, 0, 1, 1])
    assert whole["step_offsets"] == [0, 3]
    assert (second["step"], second["columns"][RESERVED]) == ([2], [2])
    lives = run["ranks"][0]["lives"]
    assert [(life["kind"], life["pid"]) for life in lives] == [("start", 812), ("restart", 990)]
    assert (run["restarts"], listed[0]["restarts"]) == (1, 1)
    assert listed[0]["restarted_ns"] == lives[1]["started_ns"]


def test_what_was_expected_is_said(server: ServerApp) -> None:
    with server.agent():
        error = server.get_error(PATH, 422, start="first")
    assert error["message"].startswith("start: expected a valid integer")
