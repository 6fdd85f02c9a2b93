"""What is wrong is answered to whoever asks, and told to whoever follows."""

from __future__ import annotations

from pathlib import Path

from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_app import OWNER, server_app
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_protocol.account import AgentAccount

FLOOR = "allocated_bytes.all.current"
PEAK = "step.peak_allocated_bytes"
MIB = 1 << 20
GIB = 1 << 30


def degraded(agent: ScriptedAgent, rate_hz: float = 2.0, first_s: int = 1) -> None:
    for second in range(first_s, first_s + 15):
        account = AgentAccount(
            elapsed_us=second * 1_000_000, wanted_rate_hz=10.0, budget_fraction=0.005
        )
        agent.status(rate_hz, account)


def leaking(agent: ScriptedAgent, steps: int = 240, first: int = 1) -> None:
    """Steps that each leave a MiB behind, in batches as an agent sends them."""
    for start in range(first, first + steps, 24):
        numbers = range(start, start + 24)
        sizes = [GIB + number * MIB for number in numbers]
        agent.steps(24, step=start, **{FLOOR: sizes, PEAK: [size + GIB for size in sizes]})


def test_a_lowered_rate_is_a_finding_until_it_is_over(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        path = f"/api/v1/runs/{agent.run.id}/findings"
        assert server.get(path)["findings"] == []
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
        assert server.get(path, state="open")["findings"] == []
        assert [each["id"] for each in server.get(path)["findings"]] == [told["id"]]
        assert [each["what"] for each in over["finding"]["history"]] == ["opened", "resolved"]


def test_what_held_when_the_agent_left_stays_its_verdict(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        leaking(agent)
        path = f"/api/v1/runs/{agent.run.id}/findings"
        server.wait_until(lambda: server.get(path)["findings"])
        assert server.get(f"/api/v1/runs/{agent.run.id}")["finding"]["kind"] == "leak"
        agent.goodbye()
        agent.wait_acked()
        server.wait_until(lambda: not server.get(path, state="open")["findings"])
        (found,) = server.get(path, state="verdict")["findings"]
        assert (found["state"], found["kind"], found["stage"]) == ("final", "leak", "suspected")
        assert found["resolved_ns"] is not None
        (run,) = server.get("/api/v1/runs")
        assert run["finding"]["summary"] == found["summary"]
        assert sum(run["findings_open"].values()) == 1
        assert server.get(path)["judged_ns"] > found["opened_ns"]
        assert "leak" in server.get(path)["looked_for"]


def test_two_ranks_that_leak_are_one_finding_and_one_of_them_is_asked(tmp_path: Path) -> None:
    frame = {"file": "/job/train.py", "line": 56, "function": "step"}
    group = {
        "stack": [frame],
        "bytes": 12 * MIB,
        "count": 12,
        "bytes_at_looks": [0, 4 * MIB, 8 * MIB, 12 * MIB],
        "counts_at_looks": [0, 4, 8, 12],
        "tensors": ["float32[512, 512]"],
        "holders": [{"kind": "global", "chain": ["kept", "list of 240"], "tensors": 4}],
    }
    report = {
        "steps": [228, 232, 236, 240],
        "live_bytes_at_looks": [GIB + number * MIB for number in (228, 232, 236, 240)],
        "groups": [group],
        "complete": True,
    }
    with (
        server_app(tmp_path) as server,
        server.agent(rank=0, world_size=2, pid=1) as first,
        server.agent(rank=1, world_size=2, pid=2) as second,
    ):
        for agent in (first, second):
            agent.rank.commands.append("explain_growth")
            agent.reconnect()
            leaking(agent)
        path = f"/api/v1/runs/{first.run.id}/findings"
        (found,) = server.wait_until(
            lambda: [f for f in server.get(path)["findings"] if f["ranks"] == [0, 1]]
        )
        assert (found["rank"], found["stage"]) == (None, "suspected")
        asked = first.wait_command()
        assert (asked.name, asked.issued_by) == ("explain_growth", "vramscope")
        first.update(asked, "done", result=report)
        (told,) = server.wait_until(
            lambda: [f for f in server.get(path)["findings"] if f["stage"] == "confirmed"]
        )
        assert (told["id"], told["subject"]) == (found["id"], "train.py:56")
        assert told["ranks"] == [0, 1]
        assert told["culprits"][0]["held_by"] == ["kept", "list of 240"]
        commands = server.get(f"/api/v1/runs/{first.run.id}/commands")["commands"]
        assert [command["ranks"] for command in commands] == [[0]]


def test_a_finding_is_muted_and_heard_of_again(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        run = f"/api/v1/runs/{agent.run.id}"
        leaking(agent)
        (found,) = server.wait_until(lambda: server.get(f"{run}/findings")["findings"])
        path = f"{run}/findings/{found['id']}"
        assert server.get(path)["id"] == found["id"]
        body = {"reason": "a cache that is meant to grow", "until": "day"}
        assert server.post(f"{path}/mute", body, server.make_token("view")).status_code == 403
        muted = server.post(f"{path}/mute", body).json()["muted"]
        assert (muted["until"], muted["reason"]) == ("day", body["reason"])
        assert muted["until_ns"] - muted["muted_ns"] == 86_400 * 10**9
        assert server.get(path)["muted"] == muted
        assert server.get(run)["finding"] is None
        assert sum(server.get(run)["findings_open"].values()) == 0
        answer = server.client.delete(f"{path}/mute", headers=OWNER)
        assert (answer.status_code, answer.json()["muted"]) == (200, None)
        assert server.get(run)["finding"]["id"] == found["id"]
        asked = [row["name"] for row in server.get("/api/v1/audit")["audit"]]
        assert asked[:2] == ["unmute_finding", "mute_finding"]


def test_what_cannot_be_muted_is_refused(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        run = f"/api/v1/runs/{agent.run.id}"
        leaking(agent)
        (found,) = server.wait_until(lambda: server.get(f"{run}/findings")["findings"])
        body = {"reason": "known", "until": "run"}
        assert server.post(f"{run}/findings/none/mute", body).status_code == 404
        path = f"{run}/findings/{found['id']}/mute"
        assert server.post(path, {"reason": "", "until": "run"}).status_code == 422
        assert server.post(path, {"reason": "known", "until": "ever"}).status_code == 422
        # What grows there is not known yet: muting it would mute every leak of the job.
        assert server.post(path, {"reason": "known", "until": "line"}).status_code == 400


def test_a_token_for_one_run_mutes_nothing_in_others(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        run = f"/api/v1/runs/{agent.run.id}"
        finding = Finding("leak", "warning", "It grows.", subject="train.py:5")
        board = server.context.board
        board.report(agent.run.id, 0, "leak", finding)
        (found,) = server.get(f"{run}/findings")["findings"]
        token = server.post(f"{run}/frames", {"scopes": ["view", "control"]}).json()["token"]
        path = f"{run}/findings/{found['id']}/mute"
        line = {"reason": "known", "until": "line"}
        assert server.post(path, line, token).status_code == 403
        assert server.post(path, line | {"until": "run"}, token).status_code == 200
        assert server.post(path, line).status_code == 200
        bearer = {"authorization": f"Bearer {token}"}
        assert server.client.delete(path, headers=bearer).status_code == 403
        # Nor is it a way around that to mute it for the run first.
        assert server.post(path, line | {"until": "run"}, token).status_code == 200
        assert server.client.delete(path, headers=bearer).status_code == 200
        record = board.find(found["id"])
        assert record is not None
        assert (board.mutes.of(record) or {})["until"] == "line"
        assert server.client.delete(path, headers=OWNER).status_code == 200
        assert board.mutes.of(record) is None


def test_an_unknown_run_and_an_unknown_state_are_refused(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        server.get_error("/api/v1/runs/none/findings", 404)
        server.get_error(f"/api/v1/runs/{agent.run.id}/findings/none", 404)
        server.get_error(f"/api/v1/runs/{agent.run.id}/findings", 422, state="muted")
