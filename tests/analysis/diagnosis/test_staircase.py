"""Equal rises at equal distances are one thing; rises of any kind are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    CLEAN,
    MIB,
    STEP_NS,
    at,
    clean,
    prefixes,
    rank_of,
    steps_of,
)
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.staircase import Staircase, staircase_of
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch


def staircase(rank: RankEvidence) -> Staircase | None:
    return staircase_of(floors_of(rank.steps), rank.stretches)


def climbing(
    period: int,
    *,
    steps: int = 300,
    rise: int = 12 * MIB,
    stretches: tuple[Stretch, ...] = (),
    more: int | None = None,
) -> RankEvidence:
    """``more``: by so much more is handed out at each rise than at the one before."""
    risen = steps_of(steps) // period
    columns = {}
    if more is not None:
        is_rise = np.diff(risen, prepend=0) > 0
        columns["step.allocated_volume_bytes"] = 100 * MIB + is_rise * risen * more
    return rank_of(BASE + risen * rise, BLOCKS + risen * 2, stretches=stretches, columns=columns)


@pytest.mark.parametrize("period", [20, 50, 60])
def test_it_is_seen_at_the_third_rise(period: int) -> None:
    rows = next(len(known.steps) for known in prefixes(climbing(period)) if staircase(known))
    assert 3 * period < rows <= 3 * period + 4


def test_it_says_how_high_and_how_often() -> None:
    found = staircase(at(climbing(50), 210))
    assert found is not None
    assert (found.rise_bytes, found.growth.period_steps) == (12 * MIB, 50)
    assert found.steps == (51, 101, 151, 201)
    assert found.growth.slope_bytes == 12 * MIB / 50
    assert found.growth.grown_bytes == 48 * MIB
    assert (found.growth.adds_blocks, found.at) == (True, "")


def test_it_says_what_the_rises_come_with() -> None:
    stretches = tuple(
        Stretch(
            "eval", (step * 50) * STEP_NS + 1000, (step * 50) * STEP_NS + STEP_NS // 2, step * 50
        )
        for step in range(1, 5)
    )
    found = staircase(at(climbing(50, stretches=stretches), 210))
    assert found is not None
    assert found.at == "eval"


def test_irregular_evaluations_may_come_at_any_distance() -> None:
    starts = [30, 75, 190, 220, 400]
    risen = np.searchsorted(np.array(starts), steps_of(450), side="right")
    stretches = tuple(
        Stretch("eval", start * STEP_NS + 1000, start * STEP_NS + 2000, start) for start in starts
    )
    rank = rank_of(BASE + risen * 12 * MIB, BLOCKS + risen, stretches=stretches)
    assert staircase(rank_of(BASE + risen * 12 * MIB, BLOCKS + risen)) is None
    found = staircase(rank)
    assert found is not None
    assert (len(found.steps), found.at) == (5, "eval")


def test_it_is_over_when_the_next_rise_does_not_come() -> None:
    risen = np.minimum(steps_of(400) // 50, 3)
    rank = rank_of(BASE + risen * 48 * MIB, BLOCKS + risen)
    assert staircase(at(rank, 200)) is not None
    assert staircase(at(rank, 240)) is None


@pytest.mark.parametrize(("more", "is_one"), [(0, True), (1, True), (2, True), (4, False)])
def test_more_work_each_time_leaves_more_behind_each_time(more: int, is_one: bool) -> None:
    """As an evaluation of a set that grows; reading what was kept is no such work."""
    found = staircase(at(climbing(50, more=more * 12 * MIB), 210))
    assert (found is not None) is is_one


def test_rises_of_different_heights_are_none() -> None:
    heights = np.array([0, 10, 60, 75, 200, 210])[steps_of(300) // 50]
    assert staircase(rank_of(BASE + heights * MIB, BLOCKS + heights)) is None


def test_steps_that_differ_are_not_level_ground() -> None:
    rng = np.random.default_rng(0)
    risen = steps_of(300) // 50
    floor = BASE + risen * 12 * MIB + rng.integers(0, 100 * MIB, 300)
    assert staircase(rank_of(floor, BLOCKS + risen)) is None


@pytest.mark.parametrize("name", [name for name in CLEAN if name != "shapes are cached"])
def test_a_job_that_is_well_never_climbs_one(name: str) -> None:
    found = [staircase(known) for known in prefixes(clean(name), every=3)]
    assert not any(each is not None and each.growth.adds_blocks for each in found)


def test_too_few_rows_say_nothing() -> None:
    assert staircase(rank_of([BASE] * 3)) is None
