"""What grew while the agent looked, and came back since, is not what goes on growing."""

from __future__ import annotations

from dataclasses import replace

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    MIB,
    group_of,
    held_by,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.gone_since import without_gone
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

LIST = group_of(held_by("local", "outs", "list of 18"), line=20, pace=4 * MIB)
LEAK = group_of(held_by("global", "forgotten", "list of 268"), line=21, pace=MIB)
LOOKS = (253, 257, 261, 265)


def job(steps: int) -> RankEvidence:
    """Leaks a quarter of a MiB a step, beside a list that is filled anew every 50 steps."""
    at = steps_of(steps)
    return rank_of(BASE + at * MIB // 4 + at % 50 * MIB, BLOCKS + at + at % 50)


def left(steps: int) -> GrowthReport:
    return without_gone(report_of(LIST, LEAK, steps=LOOKS), floors_of(job(steps).steps))


def test_a_list_that_was_emptied_is_left_out_and_the_leak_beside_it_stays() -> None:
    assert left(500).groups == (LEAK,)
    assert left(500).live_bytes_at_looks == report_of(LEAK, steps=LOOKS).live_bytes_at_looks
    assert left(270).groups == (LIST, LEAK)


def test_what_goes_on_stays() -> None:
    at = steps_of(500)
    rank = rank_of(BASE + at * MIB, BLOCKS + at)
    report = report_of(LIST, steps=LOOKS)
    assert without_gone(report, floors_of(rank.steps)) is report
    assert without_gone(GrowthReport(), floors_of(rank.steps)) == GrowthReport()


def test_the_leak_is_named_by_its_own_line() -> None:
    (finding,) = leak(replace(job(500), growth=report_of(LIST, LEAK, steps=LOOKS)))
    assert (finding.stage, finding.subject) == ("confirmed", "train.py:21")
    assert finding.culprits[0].held_by == ("forgotten", "list of 268")
