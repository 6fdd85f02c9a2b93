"""What grows and has a name is in use, or is only kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.support.step_floors import BASE, BLOCKS, MIB, rank_of, steps_of
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.in_use import grown_category, use_of
from vramscope_analysis.diagnosis.staircase import staircase_of
from vramscope_analysis.evidence.run_evidence import RankEvidence

N = steps_of(300)
TRIALS = N // 50


def trials(volume: NDArray[np.int64] | int | None, *, named: int = 10) -> RankEvidence:
    """Each trial adds 16 MiB, ``named`` of them parameters."""
    zero = 0 * N
    columns = {
        "category.parameters_bytes": 100 * MIB + TRIALS * named * MIB,
        "category.gradients_bytes": zero,
        "category.optimizer_state_bytes": zero + TRIALS * (4 * MIB if named else 0),
        "category.buffers_bytes": zero,
    }
    if volume is not None:
        columns["step.allocated_volume_bytes"] = zero + volume
    return rank_of(BASE + TRIALS * 16 * MIB, BLOCKS + TRIALS * 4, columns=columns)


def use(rank: RankEvidence) -> tuple[str, str]:
    floors = floors_of(rank.steps)
    staircase = staircase_of(floors)
    assert staircase is not None
    return use_of(floors, staircase.growth), grown_category(rank.steps, staircase.growth, floors)


def test_models_that_no_step_works_with_are_kept() -> None:
    assert use(trials(500 * MIB)) == ("kept", "category.parameters_bytes")


def test_a_model_that_is_enlarged_costs_more_in_each_step() -> None:
    assert use(trials(500 * MIB + TRIALS * 30 * MIB))[0] == "in use"


def test_without_the_volume_of_steps_it_is_not_known() -> None:
    assert use(trials(None))[0] == "not known"


def test_steps_that_differ_much_say_nothing() -> None:
    noise = np.random.default_rng(1).integers(0, 400, 300) * MIB
    assert use(trials(500 * MIB + noise))[0] in ("not known", "in use")


def test_what_is_of_no_category_is_unnamed() -> None:
    assert use(trials(500 * MIB, named=0))[0] == "unnamed"


def test_without_categories_all_is_unnamed() -> None:
    rank = rank_of(BASE + TRIALS * 16 * MIB, BLOCKS + TRIALS)
    assert use(rank)[0] == "unnamed"
