"""The numbers of growth, as the page draws them, and its pace in words."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    GIB,
    MIB,
    STEP_NS,
    group_of,
    held_by,
    leaking,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch


def texts(rank: RankEvidence) -> tuple[str, str]:
    reading = growth_reading(rank)
    assert reading.growth is not None
    return pace_text(reading.growth, reading.staircase), since_text(reading.growth)


def test_a_pace_is_per_step_or_per_what_it_comes_with() -> None:
    risen = steps_of(300) // 50
    rank = rank_of(BASE + risen * 12 * MIB, BLOCKS + risen)
    evaluations = tuple(
        Stretch("eval", 50 * k * STEP_NS + 10, 50 * k * STEP_NS + 20, 50 * k) for k in range(1, 6)
    )
    assert texts(leaking(3 * MIB))[0] == "3.0 MiB per step"
    assert texts(rank)[0] == "12.0 MiB every 50 steps"
    assert texts(replace(rank, stretches=evaluations))[0] == "12.0 MiB per evaluation"


def test_it_says_since_when_and_how_much() -> None:
    assert texts(leaking(MIB, onset=100))[1] == "Since step 102: 298 MiB so far."


def test_all_of_it_is_plain_json() -> None:
    report = report_of(group_of(held_by("local", "kept", "list of 40")))
    rank = replace(leaking(MIB), total_bytes=2 * GIB, growth=report)
    reading = growth_reading(rank)
    assert reading.growth is not None
    evidence = json.loads(json.dumps(growth_evidence(reading, reading.growth)))
    assert evidence["series"] == "allocated_bytes.all.current"
    assert evidence["slope_bytes_per_step"] == MIB
    assert evidence["base_bytes"] + evidence["grown_bytes"] == BASE + 349 * MIB
    assert evidence["forecast"]["limit_bytes"] == 2 * GIB
    assert evidence["facts"][0] == "348 of 348 steps ended higher than the one before."
    assert evidence["facts"][1] == "Its tensors at 4 looks: 4, 8, 12, 16."
