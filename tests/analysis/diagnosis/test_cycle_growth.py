"""Garbage in cycles is told from a leak, with or without a report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.analysis.diagnosis.test_sawtooth import samples_of
from tests.support.step_floors import (
    BASE,
    BLOCKS,
    GIB,
    MIB,
    at,
    group_of,
    held_by,
    leaking,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.cycle_growth import cycle_growth
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

GARBAGE = report_of(
    group_of(held_by("garbage", "Node.me"), line=9, garbage_bytes=12 * MIB),
    garbage={"bytes": 12 * MIB, "tensors": 12, "cycle": ["Node", ".me"]},
)


def teeth(period: int = 90, *, steps: int = 400, young: bool = False) -> RankEvidence:
    gathered = steps_of(steps) % period
    return rank_of(
        BASE + gathered * 2 * MIB,
        BLOCKS + gathered,
        samples=samples_of(list(range(period, steps, period)), steps=steps, young=young),
        total_bytes=16 * GIB,
    )


def test_falls_alone_are_a_question_and_no_alarm() -> None:
    (finding,) = cycle_growth(teeth())
    assert (finding.severity, finding.stage) == ("info", "suspected")
    assert finding.summary == (
        "Up to 178 MiB comes back only when Python collects garbage: reference cycles?"
    )
    assert "Memory fell 4 times" in finding.detail


def test_young_collections_nobody_called_for_so_several_falls_are_sure() -> None:
    (finding,) = cycle_growth(teeth(young=True))
    assert (finding.severity, finding.stage, finding.culprits) == ("warning", "confirmed", ())
    assert finding.summary == (
        "Reference cycles hold up to 178 MiB until Python collects them, every 90 steps or so."
    )
    (early,) = cycle_growth(at(teeth(young=True), 240))
    assert early.stage == "suspected"


def test_a_report_makes_it_sure_and_names_the_line_and_the_cycle() -> None:
    (finding,) = cycle_growth(replace(teeth(), growth=GARBAGE))
    assert (finding.severity, finding.stage, finding.subject) == (
        "warning",
        "confirmed",
        "train.py:9",
    )
    assert finding.summary == (
        "Reference cycles at train.py:9 hold up to 178 MiB until Python collects them, "
        "every 90 steps or so."
    )
    assert "The cycle: Node → .me." in finding.detail
    assert finding.remedies[0].action == "Break the cycle"


def test_while_it_rises_for_the_first_time_the_report_tells_it_from_a_leak() -> None:
    rank = replace(leaking(2 * MIB), growth=GARBAGE, samples=samples_of([20]))
    assert leak(rank) == []
    (finding,) = cycle_growth(rank)
    assert finding.summary == (
        "Reference cycles at train.py:9 hold 696 MiB until Python collects them; "
        "it last did 380 steps ago."
    )
    assert "forecast" not in finding.evidence


def test_the_next_teeth_are_not_suspected_of_being_a_leak() -> None:
    rank = teeth(period=100, steps=400)
    assert all(leak(at(rank, rows)) == [] for rows in range(210, 400, 5))


def test_a_list_that_is_cleared_when_the_job_collects_is_no_cycle() -> None:
    kept = report_of(group_of(held_by("attribute", "T.outputs", "list of 90")))
    assert cycle_growth(replace(teeth(), growth=kept)) == []


def test_what_is_little_is_worth_knowing_only() -> None:
    small = replace(teeth(), total_bytes=None)
    floor = small.steps.columns["allocated_bytes.all.current"] + 8 * GIB
    rows = replace(small.steps, columns={"allocated_bytes.all.current": floor})
    live = tuple(look + 8 * GIB for look in GARBAGE.live_bytes_at_looks)
    report = replace(GARBAGE, live_bytes_at_looks=live)
    (finding,) = cycle_growth(replace(small, steps=rows, growth=report))
    assert finding.severity == "info"


def test_the_cost_of_a_collection_is_that_of_this_job() -> None:
    rank = teeth()
    pause = rank.samples.numbers("gc.full_collections") * 88_400
    columns = {**rank.samples.columns, "gc.full_pause_us": pause.astype(np.int64)}
    (finding,) = cycle_growth(replace(rank, samples=replace(rank.samples, columns=columns)))
    assert finding.remedies[1].cost == "A full collection takes 88 ms here."


def test_sentences_fit_and_level_floors_say_nothing() -> None:
    for rank in (teeth(), replace(teeth(), growth=GARBAGE)):
        assert all(len(finding.summary) <= MAX_SENTENCE for finding in cycle_growth(rank))
    level = rank_of([BASE] * 400, samples=samples_of([90, 180]))
    assert cycle_growth(level) == []
    assert cycle_growth(replace(level, samples=Rows(np.zeros(0, np.int64)))) == []
