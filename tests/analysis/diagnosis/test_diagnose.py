"""All judges are asked, of every rank, and the most urgent finding comes first."""

from __future__ import annotations

import numpy as np
import pytest

from vramscope_analysis.diagnosis import diagnose as registry
from vramscope_analysis.diagnosis.diagnose import RankJudge, RunJudge, diagnose
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence


def of_ranks(*ranks: RankEvidence) -> RunEvidence:
    return RunEvidence("r", 0, ranks=ranks)


def growing(rank: int, slope_bytes: int) -> RankEvidence:
    number = np.arange(400, dtype=np.int64)
    floor = 10**9 + np.maximum(number - 50, 0) * slope_bytes
    rows = Rows(number * 10**7, {"allocated_bytes.all.current": floor}, number)
    return RankEvidence(rank, steps=rows)


def test_a_run_of_which_nothing_is_known_is_not_judged() -> None:
    assert diagnose(RunEvidence("r", 0)) == []
    assert diagnose(of_ranks(RankEvidence(0))) == []


def test_the_rank_that_leaks_is_named_and_the_others_are_not() -> None:
    findings = diagnose(of_ranks(growing(0, 0), growing(3, 1 << 20)))
    assert [(finding.kind, finding.ranks) for finding in findings] == [("leak", (3,))]


def test_the_most_urgent_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_rank(rank: RankEvidence) -> list[Finding]:
        return [
            Finding("leak", "warning", "suspected", stage="suspected"),
            Finding("thrash", "warning", "sure"),
            Finding("thrash", "info", "small"),
        ]

    def of_run(run: RunEvidence) -> list[Finding]:
        return [Finding("oom", "critical", "worst", ranks=(0, 1))]

    monkeypatch.setattr(registry, "JUDGES", (RankJudge(of_rank), RunJudge(of_run)))
    findings = diagnose(of_ranks(RankEvidence(7)))
    assert [finding.summary for finding in findings] == ["worst", "sure", "suspected", "small"]
    assert [finding.ranks for finding in findings] == [(0, 1), (7,), (7,), (7,)]
