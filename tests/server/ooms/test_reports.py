"""What is stored of a report, what is told of it later, and what it is judged to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_app import ServerApp, server_app
from tests.support.wire_ooms import wire_oom
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_server.ooms import judged_report
from vramscope_server.ooms.reports import OomReports
from vramscope_server.settings import Limits
from vramscope_server.store import ooms

RUN = "0123456789ab"


class Evidence:
    """Who judges by reports; keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int, OomReport]] = []

    def take_oom(self, run_id: str, rank: int, report: OomReport, size_bytes: int = 0) -> None:
        self.taken.append((run_id, rank, report))


@pytest.fixture
def evidence(server: ServerApp, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    found = Evidence()
    monkeypatch.setitem(server.context.ooms.__dict__, "_evidence", found)
    return found


def listed(server: ServerApp) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"/api/v1/runs/{RUN}/ooms")["ooms"]
    return found


def send(agent: ScriptedAgent, identity: str = "o1", **fields: Any) -> None:
    begin, data = wire_oom(identity, **fields)
    assert agent.oom(begin, data).offset == len(data)


def fail(*_arguments: Any, **_named: Any) -> Any:
    raise ZeroDivisionError


def test_a_report_is_judged_when_it_comes_and_told(server: ServerApp, evidence: Evidence) -> None:
    with server.agent() as agent, server.live() as page:
        page.ask("subscribe_run", run=RUN, fields=[])
        send(agent)
        told = page.wait_event("oom")
    (row,) = listed(server)
    assert told["oom"] == row
    assert row["severity"] == "critical"
    assert row["summary"]
    ((run_id, rank, report),) = evidence.taken
    assert (run_id, rank, report.id, report.step) == (RUN, 0, "o1", 7)


def test_a_step_that_ended_later_makes_it_recovered(server: ServerApp, evidence: Evidence) -> None:
    with server.agent() as agent:
        send(agent)
        agent.event("oom_recovered", step=8, report="o1", reports=["o1", "not there"])
        server.wait_until(lambda: listed(server)[0]["recovered_step"] == 8)
        agent.event("oom_recovered", step=9, report="o1", reports=["o1"])
        agent.wait_acked()
    assert listed(server)[0]["recovered_step"] == 8
    assert listed(server)[0]["severity"] != "critical"
    assert evidence.taken[-1][2].recovered_step == 8


def test_a_report_is_unpacked_only_if_something_has_changed(
    server: ServerApp, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[str] = []
    body = ooms.body

    def noted(connection: Connection, identity: str) -> bytes | None:
        unpacked.append(identity)
        return body(connection, identity)

    with server.agent() as agent:
        send(agent)
        monkeypatch.setattr(ooms, "body", noted)
        for step in (8, 9, 10):
            agent.event("oom_recovered", step=step, report="o1", reports=["o1"])
        agent.event("oom_fatal", report="o1", message="CUDA out of memory.")
        server.wait_until(lambda: len(evidence.taken) == 3)
    assert unpacked == ["o1", "o1"]


def test_what_ended_the_job_says_so(server: ServerApp, evidence: Evidence) -> None:
    with server.agent() as agent:
        send(agent)
        agent.event("oom_fatal", report="o1", message="CUDA out of memory. Tried ...")
        server.wait_until(lambda: listed(server)[0]["is_fatal"])
    found = server.get("/api/v1/ooms/o1")
    assert found["message"] == found["report"]["message"] == "CUDA out of memory. Tried ..."
    assert evidence.taken[-1][2].message == "CUDA out of memory. Tried ..."


def test_what_is_told_before_the_report_is_there_is_not_lost(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.event("oom_recovered", step=8, report="o1", reports=["o1"])
        agent.wait_acked()
        send(agent)
    assert listed(server)[0]["recovered_step"] == 8


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"report": 7},
        {"reports": "o1"},
        {"report": "x" * 200},
        {"reports": [None, [], {}]},
    ],
)
def test_events_that_say_nothing_of_use_change_nothing(
    server: ServerApp, told: dict[str, Any]
) -> None:
    with server.agent() as agent:
        send(agent)
        agent.event("oom_recovered", step=8, **told)
        agent.event("oom_fatal", **told)
        agent.wait_acked()
        (row,) = listed(server)
    assert (row["recovered_step"], row["is_fatal"]) == (None, False)


def test_another_run_cannot_change_it(server: ServerApp) -> None:
    with server.agent() as agent, server.agent(run_id="fedcba987654", run="b") as other:
        send(agent)
        other.event("oom_fatal", report="o1", message="not mine")
        other.wait_acked()
        send(agent, "o2", time_ns=5)
    assert [row["is_fatal"] for row in listed(server)] == [False, False]


def test_another_run_cannot_say_how_one_goes_on_that_is_still_to_come(server: ServerApp) -> None:
    with server.agent() as agent, server.agent(run_id="fedcba987654", run="b") as other:
        other.event("oom_fatal", report="o1", message="not mine")
        other.wait_acked()
        send(agent)
    assert (listed(server)[0]["is_fatal"], listed(server)[0]["message"]) == (False, "")


def test_a_step_that_no_database_holds_is_no_step(server: ServerApp) -> None:
    with server.agent() as agent:
        for step in (True, 1 << 63, -1, 1.5):
            agent.event("oom_recovered", step=step, report="o1")
        send(agent)
        agent.event("oom_recovered", step=(1 << 64) - 1, report="o1")
        agent.event("oom_fatal", report="o1")
        server.wait_until(lambda: listed(server)[0]["is_fatal"])
    assert listed(server)[0]["recovered_step"] is None


def test_what_is_told_while_it_is_stored_is_not_lost(
    server: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = ooms.add

    def told_meanwhile(connection: Connection, row: dict[str, Any], report: bytes) -> bool:
        event = {"kind": "oom_fatal", "data": {"report": row["id"]}}
        assert server.client.portal is not None
        server.client.portal.call(server.context.ooms.take_event, RUN, event)
        return add(connection, row, report)

    monkeypatch.setattr(ooms, "add", told_meanwhile)
    with server.agent() as agent:
        send(agent)
    server.wait_until(lambda: listed(server)[0]["is_fatal"])


def test_names_that_are_no_text_are_given_out_all_the_same(server: ServerApp) -> None:
    with server.agent() as agent:
        send(agent, largest=[{"tensor": "f[1]", "bytes": 1, "name": "caf\udce9"}])
    assert server.get("/api/v1/ooms/o1")["report"]["largest"][0]["name"] == "caf?"


def test_one_that_cannot_be_read_keeps_no_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        send(agent)
    monkeypatch.setattr(judged_report, "oom_report_of", fail)
    with server_app(tmp_path) as server:
        assert len(listed(server)) == 1


def test_a_rank_that_was_only_asked_is_not_judged(server: ServerApp, evidence: Evidence) -> None:
    with server.agent() as agent, server.agent(rank=1) as other:
        send(agent)
        send(other, "o2", rank=1, source="asked", linked_to="o1", segment_bytes=None)
    found = server.get("/api/v1/ooms/o2")
    assert found["finding"] is None
    assert found["linked_to"] == "o1"
    assert [each["id"] for each in found["siblings"]] == ["o1"]
    assert [each["id"] for each in server.get("/api/v1/ooms/o1")["siblings"]] == ["o2"]
    assert [report.id for _, _, report in evidence.taken] == ["o1"]


def test_what_a_judge_cannot_bear_is_kept_all_the_same(
    server: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_report, "diagnose_oom", fail)
    with server.agent() as agent:
        send(agent)
    (row,) = listed(server)
    assert (row["summary"], row["severity"]) == (None, None)
    assert server.get("/api/v1/ooms/o1")["finding"] is None


def test_of_too_many_the_first_and_the_last_stay(tmp_path: Path) -> None:
    limits = replace(Limits(), oom_rank_count=6)
    with server_app(tmp_path, limits) as server, server.agent() as agent:
        for number in range(12):
            send(agent, f"o{number}", time_ns=1_800_000_000_000_000_000 + number)
        kept = [row["id"] for row in listed(server)]
        assert kept == ["o11", "o10", "o9", "o2", "o1", "o0"]
        with server.live() as page:
            page.ask("subscribe_run", run=RUN, fields=[])
            # One that was left on the machine, and comes when there is no room between them.
            send(agent, "late", time_ns=1_800_000_000_000_000_003)
            send(agent, "o12", time_ns=1_800_000_000_000_000_012)
            assert page.wait_event("oom")["oom"]["id"] == "o12", "it is not there"


def test_after_a_restart_the_judges_get_them_again(tmp_path: Path) -> None:
    with server_app(tmp_path) as server, server.agent() as agent:
        send(agent)
        send(agent, "o2", source="asked", linked_to="o1")
    with server_app(tmp_path) as server:
        evidence = Evidence()
        context = server.context
        reports = OomReports(context.store, context.hub, evidence, context.registry, Limits())
        assert server.client.portal is not None
        server.client.portal.call(reports.start)
    assert [report.id for _, _, report in evidence.taken] == ["o1"]
