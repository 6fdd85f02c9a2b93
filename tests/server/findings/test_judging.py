"""All judges are asked, whatever one of them does."""

from __future__ import annotations

import logging
import math
from array import array
from typing import Any

import numpy as np
import pytest

from vramscope_analysis.diagnosis.diagnose import JUDGES, RankJudge, RunJudge
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.questions import Question
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence
from vramscope_protocol.columns import TypeCode, encode_columns
from vramscope_protocol.messages import DeviceInfo, Field, RankInfo
from vramscope_protocol.series import SERIES
from vramscope_server.findings import judging as judging_module
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.judging import Judging
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import ColumnLayout, Rows


def grows(rank: RankEvidence) -> list[Finding]:
    return [Finding("leak", "warning", f"Rank {rank.rank} grows.")]


def fails(rank: RankEvidence) -> list[Finding]:
    if rank.rank == 1:
        raise ZeroDivisionError
    return [Finding("thrash", "info", "It thrashes.")]


def differs(run: RunEvidence) -> list[Finding]:
    return [Finding("rank_imbalance", "info", "They differ.", ranks=(0, len(run.ranks) - 1))]


ALL = (RankJudge(grows), RankJudge(fails), RunJudge(differs))
RUN = RunEvidence("run-a", 17, ranks=(RankEvidence(0), RankEvidence(1)))


def nothing(_run: RunEvidence) -> list[Question]:
    return []


def test_a_judge_that_fails_is_noted_and_the_others_are_heard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judging = Judging(ALL, nothing)
    with caplog.at_level(logging.ERROR, "vramscope.findings"):
        for _ in range(5):
            judgement = judging.judge(RUN)
    assert [(each.judge, each.finding.ranks) for each in judgement.found] == [
        ("grows", (0,)),
        ("grows", (1,)),
        ("fails", (0,)),
        ("differs", (0, 1)),
    ]
    assert judgement.failures == {"fails"}
    assert judging.failures == {"fails": 5}
    assert len(caplog.records) == 3, "not every time: 1, 2, 4, 8 ..."
    assert judgement.run_id == "run-a"
    assert judgement.ranks == frozenset({0, 1})
    assert judging.names == ["grows", "fails", "differs"]


def test_ranks_are_not_compared_where_another_server_does_it() -> None:
    judgement = Judging(ALL, nothing).judge(RUN, frozenset({"differs"}))
    assert {each.judge for each in judgement.found} == {"grows", "fails"}
    assert judgement.not_asked == {"differs"}


def test_what_else_is_worth_knowing_is_asked_too_and_may_fail() -> None:
    asked = Judging(ALL, lambda _run: [Question(0, "it grows")]).judge(RUN)
    assert [question.rank for question in asked.questions] == [0]

    def broken(_run: RunEvidence) -> list[Question]:
        raise ValueError

    judgement = Judging(ALL, broken).judge(RUN)
    assert judgement.questions == []
    assert "questions" in judgement.failures


def test_findings_of_one_judge_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging_module, "MAX_FINDINGS", 2)
    many = RankJudge(lambda _rank: [Finding("leak", "info", "It grows.")] * 50)
    assert len(Judging((many,), nothing).judge(RUN).found) == 4


class Registry:
    """One rank with a device."""

    def rank_info(self, run_id: str, rank: int) -> RankInfo:
        return RankInfo(rank, "host", 1, devices=[DeviceInfo(0, "GPU", total_bytes=0)])

    def run(self, run_id: str) -> dict[str, Any]:
        return {"state": "live", "world_size": 2, "emulated": False, "ranks": []}


def test_hostile_numbers_stop_no_judge(caplog: pytest.LogCaptureFixture) -> None:
    """The real judges, on what only somebody with bad intent sends."""
    whole = [-(1 << 63), (1 << 63) - 1, 0, -1, 1 << 62]
    floats = [math.nan, math.inf, -math.inf, 1e308, -1e308]
    random = np.random.default_rng(3)
    registry = Registry()
    evidence = GatheredEvidence(registry)
    for rank, choices in ((0, whole), (1, floats)):
        code: TypeCode = "q" if rank == 0 else "d"
        names = [name for name in SERIES if name not in {"time_ns", "step"}]
        layout = ColumnLayout(
            [Field("time_ns", "q"), Field("step", "q"), *(Field(name, code) for name in names)]
        )
        columns = [array(code, random.choice(choices, 300).tolist()) for _ in layout.fields]
        columns[0] = array("q", sorted(random.integers(0, (1 << 63) - 1, 300).tolist()))
        columns[1] = array("q", random.choice(whole, 300).tolist())
        body = encode_columns(columns)
        rows = Rows.from_batch("step", 0, layout, 300, body)
        evidence.take_steps("run-a", rank, rows, LifeOffset(0, 0))
        evidence.take_samples("run-a", rank, rows)
        for kind in ("settings", "oom", "phase", "processes"):
            data: dict[str, Any] = {"text": 7, "id": 1, "phase": "eval", "start_ns": 1 << 70}
            event = {"rank": rank, "time_ns": 0, "kind": kind, "step": -5, "text": "", "data": data}
            evidence.take_event("run-a", event)
        status = {"processes": [{"pid": -1, "command": "x", "bytes": 0, "own": False}]}
        evidence.take_status("run-a", rank, status)
        told = {"groups": [{"bytes": -1}, 7], "steps": [3, 1, "x"], "garbage": {"bytes": []}}
        receipt = {"state": "done", "result": told, "time_ns": 5}
        command = {"name": "explain_growth", "params": {}, "receipts": {str(rank): receipt}}
        evidence.take_command("run-a", command)
    complete = evidence.run_evidence("run-a", registry.run("run-a"), 1 << 62)
    judgement = Judging(JUDGES).judge(complete())
    assert judgement.failures == set(), caplog.text
