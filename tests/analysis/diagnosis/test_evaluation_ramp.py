"""What builds up in evaluations is told from steps that are only long, and from growth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.step_floors import BASE, MIB, STEP_NS, rank_of
from vramscope_analysis.diagnosis.evaluation_ramp import EvaluationRamp, evaluation_ramp
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

EVERY, COUNT, LONG_NS = 50, 4, 2 * 10**9
TOP = 300 * MIB


def evaluated(
    shape: str = "ramp",
    *,
    keeps: int = 0,
    samples: int = 20,
    named: bool = False,
    volume: int = 900 * MIB,
) -> RankEvidence:
    """Every 50 steps there is one that takes two seconds longer, with samples in it."""
    took = np.full(EVERY * COUNT + 10, STEP_NS, np.int64)
    took[EVERY::EVERY] += LONG_NS
    time_ns = np.cumsum(took)
    floor = BASE + (np.arange(len(took)) // EVERY) * keeps
    at_ns: list[int] = []
    allocated: list[int] = []
    for row in range(EVERY, len(took), EVERY):
        share = (np.arange(samples) + 0.5) / samples
        at_ns += (time_ns[row - 1] + share * LONG_NS).astype(np.int64).tolist()
        allocated += (BASE + heights(shape, share)).astype(np.int64).tolist()
    stretches = tuple(
        Stretch("eval", int(time_ns[row - 1]), int(time_ns[row]) - STEP_NS // 2, row)
        for row in range(EVERY, len(took), EVERY)
    )
    volumes = np.where(took > STEP_NS, volume, 300 * MIB)
    rank = rank_of(
        floor,
        columns={"step.allocated_volume_bytes": volumes},
        samples=Rows(np.array(at_ns), {"allocated_bytes.all.current": allocated_of(allocated)}),
    )
    rows = replace(rank.steps, time_ns=time_ns)
    return replace(rank, steps=rows, stretches=stretches if named else ())


def allocated_of(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def heights(
    shape: str, share: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    noise = np.random.default_rng(5).random(len(share)) * 20 * MIB
    if shape == "ramp":
        return share * TOP + noise
    if shape == "forward and backward":
        return np.where(share < 0.4, share / 0.4, (1 - share) / 0.6) * TOP
    return TOP + noise  # level: a larger batch


def ramp(rank: RankEvidence) -> EvaluationRamp | None:
    return evaluation_ramp(rank, floors_of(rank.steps))


@pytest.mark.parametrize("named", [False, True])
def test_a_ramp_that_comes_back_each_time_is_found(named: bool) -> None:
    found = ramp(evaluated(named=named))
    assert found is not None
    assert found.bytes == pytest.approx(TOP, rel=0.15)
    assert found.steps == (51, 101, 151, 201)
    assert found.name == ("eval" if named else "")


@pytest.mark.parametrize("shape", ["level", "forward and backward"])
def test_evaluations_that_keep_nothing_have_none(shape: str) -> None:
    assert ramp(evaluated(shape)) is None
    assert ramp(evaluated(shape, named=True)) is None


def test_what_stays_after_the_evaluation_is_growth_and_no_ramp() -> None:
    assert ramp(evaluated(keeps=TOP)) is None


def test_a_few_samples_say_nothing() -> None:
    assert ramp(evaluated(samples=4)) is None
    assert ramp(replace(evaluated(), samples=Rows(np.zeros(0, np.int64)))) is None


def test_a_step_that_the_machine_held_up_is_no_evaluation() -> None:
    assert ramp(evaluated(volume=310 * MIB)) is None
    assert ramp(evaluated(volume=310 * MIB, named=True)) is not None


def test_a_single_evaluation_needs_many_samples() -> None:
    def first(samples: int, *, named: bool = True) -> EvaluationRamp | None:
        rank = evaluated(samples=samples, named=named)
        return ramp(replace(rank, steps=rank.steps.before(60)))

    assert first(8) is None
    assert first(20) is not None
    assert first(20, named=False) is None  # and to be known as one
