"""What came once and stayed is told from growth, noise and what went again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import BASE, BLOCKS, CLEAN, MIB, clean, rank_of, steps_of
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.lasting_rise import (
    LASTING_ROWS,
    last_change_step,
    lasting_rises,
)
from vramscope_analysis.evidence.run_evidence import RankEvidence

N = steps_of(300)


def steps_with_rises(rank: RankEvidence) -> list[int]:
    return [rise.step for rise in lasting_rises(floors_of(rank.steps))]


def test_a_copy_that_stays_is_one_rise() -> None:
    (rise,) = lasting_rises(floors_of(rank_of(BASE + (N >= 120) * 192 * MIB).steps))
    assert (rise.step, rise.bytes, rise.is_workspace) == (121, 192 * MIB, False)


def test_it_has_to_have_stayed_for_some_steps() -> None:
    rank = rank_of(BASE + (N >= 120) * 192 * MIB)
    before = rank.steps.before(120 + LASTING_ROWS - 1)
    after = rank.steps.before(120 + LASTING_ROWS)
    assert lasting_rises(floors_of(before)) == []
    assert len(lasting_rises(floors_of(after))) == 1


def test_what_went_again_or_is_little_or_goes_on_is_none() -> None:
    assert steps_with_rises(rank_of(BASE + ((N >= 120) & (N < 200)) * 192 * MIB)) == []
    assert steps_with_rises(rank_of(BASE + (N >= 120) * 7 * MIB)) == []
    assert steps_with_rises(rank_of(BASE + np.maximum(N - 120, 0) * 20 * MIB)) == []


@pytest.mark.parametrize("size", [8_519_680, 33_554_432])
def test_a_workspace_is_known_by_its_size_and_its_one_block(size: int) -> None:
    floor = BASE + (N >= 120) * size
    (rise,) = lasting_rises(floors_of(rank_of(floor, BLOCKS + (N >= 120)).steps))
    assert rise.is_workspace
    many = lasting_rises(floors_of(rank_of(floor, BLOCKS + (N >= 120) * 40).steps))
    assert not any(each.is_workspace for each in many)


def test_a_change_of_what_steps_do_is_told_by_their_volume() -> None:
    volume = np.where(N < 150, 900, 300) * MIB
    rank = rank_of([BASE] * 300, columns={"step.allocated_volume_bytes": volume})
    changed = last_change_step(floors_of(rank.steps))
    assert changed is not None
    assert abs(changed - 151) <= 16


def test_steps_that_always_differ_do_not_change() -> None:
    volume = np.random.default_rng(0).integers(100, 900, 300) * MIB
    rank = rank_of([BASE] * 300, columns={"step.allocated_volume_bytes": volume})
    assert last_change_step(floors_of(rank.steps)) is None
    assert last_change_step(floors_of(rank_of([BASE] * 300).steps)) is None
    assert last_change_step(floors_of(rank_of([BASE] * 9).steps)) is None


@pytest.mark.parametrize("name", [n for n in CLEAN if n not in ("one-offs", "model gets layers")])
def test_jobs_that_are_well_have_none(name: str) -> None:
    rises = lasting_rises(floors_of(clean(name).steps))
    assert [rise for rise in rises if rise.step > 60] == []
