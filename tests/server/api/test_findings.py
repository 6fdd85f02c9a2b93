"""What is wrong is answered to whoever asks, and told to whoever follows."""

from __future__ import annotations

from pathlib import Path

from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_app import server_app
from vramscope_protocol.account import AgentAccount


def degraded(agent: ScriptedAgent, rate_hz: float = 2.0, first_s: int = 1) -> None:
    for second in range(first_s, first_s + 15):
        account = AgentAccount(
            elapsed_us=second * 1_000_000, wanted_rate_hz=10.0, budget_fraction=0.005
        )
        agent.status(rate_hz, account)


def test_a_lowered_rate_is_a_finding_until_it_is_over(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        path = f"/api/v1/runs/{agent.run.id}/findings"
        assert server.get(path) == {"findings": []}
        with server.live() as page:
            page.ask("subscribe_run", run=agent.run.id, fields=[])
            page.wait_event("run")
            degraded(agent)
            told = page.wait_event("finding")["finding"]
            assert told["kind"] == "agent_degraded"
            (found,) = server.get(path, state="open")["findings"]
            assert found["id"] == told["id"]
            assert (found["rank"], found["severity"], found["resolved_ns"]) == (0, "info", None)
            assert found["evidence"]["rate_hz"] == 2.0
            degraded(agent, 10.0, first_s=16)
            degraded(agent, 10.0, first_s=31)
            over = page.wait_event("finding", lambda event: event["finding"]["resolved_ns"])
            assert over["finding"]["id"] == told["id"]
        assert server.get(path, state="open") == {"findings": []}
        assert [each["id"] for each in server.get(path)["findings"]] == [told["id"]]


def test_it_ends_with_the_agent(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        degraded(agent)
        path = f"/api/v1/runs/{agent.run.id}/findings"
        server.wait_until(lambda: server.get(path)["findings"])
        agent.goodbye()
        agent.wait_acked()
        server.context.board.resolve_ended()
        (found,) = server.get(path)["findings"]
        assert found["resolved_ns"] is not None


def test_an_unknown_run_and_an_unknown_state_are_refused(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        server.get_error("/api/v1/runs/none/findings", 404)
        server.get_error(f"/api/v1/runs/{agent.run.id}/findings", 422, state="muted")
