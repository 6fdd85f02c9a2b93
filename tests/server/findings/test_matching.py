"""What is found again goes on with the finding that it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.judging import Found
from vramscope_server.findings.matching import match
from vramscope_server.findings.record import FindingRecord, opened

LEAK = Finding("leak", "warning", "It grows.", ranks=(0,))


def record(**values: Any) -> FindingRecord:
    finding = replace(LEAK, **values)
    rank = finding.ranks[0] if len(finding.ranks) == 1 else None
    return opened("run-a", finding, rank, 1)


def found(**values: Any) -> Found:
    return Found("leak", replace(LEAK, **values))


def matched(records: list[FindingRecord], *findings: Found) -> list[FindingRecord | None]:
    pairs = match(records, findings)
    return [next(record for one, record in pairs if one is each) for each in findings]


def test_the_same_kind_and_subject_is_the_same() -> None:
    here, there = record(subject="a.py:1"), record(subject="b.py:2")
    again = [found(subject="b.py:2"), found(subject="a.py:1"), found(subject="c.py:3")]
    assert matched([here, there], *again) == [there, here, None]
    assert matched([here], found(kind="thrash", subject="a.py:1")) == [None]


def test_other_ranks_are_another_finding_and_more_ranks_the_same() -> None:
    one = record(subject="a.py:1")
    assert matched([one], found(subject="a.py:1", ranks=(1,))) == [None]
    assert matched([one], found(subject="a.py:1", ranks=(0, 1))) == [one]
    assert matched([record(ranks=(0, 1), kind="oom")], found(kind="oom", ranks=(0,))) == [None]
    whole = record(kind="rank_imbalance", ranks=(0, 3))
    assert matched([whole], found(kind="rank_imbalance", ranks=(1, 2))) == [whole]
    assert matched([record(kind="thrash", ranks=())], found(kind="thrash")) == [None]


def test_a_suspicion_goes_on_as_what_it_turns_out_to_be() -> None:
    open_one = record(stage="suspected")
    told = found(subject="a.py:1")
    other = found(kind="retained_exception", subject="b.py:2")
    assert matched([open_one], told) == [open_one]
    assert matched([open_one], other) == [open_one]
    assert matched([open_one], told, other) == [open_one, None]
    host = record(kind="host_growth", stage="suspected")
    assert matched([host], found(kind="host_growth", subject="a.py:1")) == [host]
    # Another kind of finding is not what was suspected.
    assert matched([record(stage="suspected", kind="thrash")], told) == [None]


def test_a_known_line_stays_known_when_it_has_to_be_looked_for_anew() -> None:
    known = record(subject="a.py:1")
    assert matched([known], found(stage="suspected")) == [known]
    # The exact one comes first.
    assert matched([known], found(stage="suspected"), found(subject="a.py:1")) == [None, known]
