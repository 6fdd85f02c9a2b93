"""The same on several ranks is one finding."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.across_ranks import across_ranks
from vramscope_server.findings.judging import Found

MIB = float(1 << 20)


def found(*ranks: int, **finding: Any) -> Found:
    values: dict[str, Any] = {"kind": "leak", "severity": "warning", "summary": "It grows."}
    return Found("leak", Finding(**values | finding, ranks=ranks))


def test_one_kind_and_subject_is_one_finding_in_the_worst_words() -> None:
    worst = found(5, severity="critical", summary="Worst.", subject="train.py:5")
    put = across_ranks([found(2, subject="train.py:5"), worst, found(7, subject="b.py:1")])
    assert [(one.finding.ranks, one.finding.summary) for one in put] == [
        ((2, 5), "Worst."),
        ((7,), "It grows."),
    ]


def test_what_has_causes_of_its_own_on_each_rank_stays_apart() -> None:
    many = [found(rank, kind="oom") for rank in range(3)]
    assert across_ranks(many) == many
    whole = [found(0, 1, kind="rank_imbalance"), found(kind="thrash")]
    assert across_ranks(whole) == whole


def test_a_suspicion_is_the_leak_whose_line_another_rank_told_if_it_is_as_fast() -> None:
    told = found(0, subject="train.py:5", evidence={"slope_bytes_per_step": MIB})
    alike = found(1, stage="suspected", evidence={"slope_bytes_per_step": 1.1 * MIB})
    other = found(2, stage="suspected", evidence={"slope_bytes_per_step": 8 * MIB})
    unknown = found(3, stage="suspected")
    put = across_ranks([alike, told, other, unknown])
    assert [(one.finding.subject, one.finding.ranks) for one in put] == [
        ("train.py:5", (0, 1)),
        ("", (2, 3)),
    ]
