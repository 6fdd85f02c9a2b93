"""The peak of the highest training step by what it is for."""

from __future__ import annotations

from tests.support.made_ranks import GIB, made_rank, stretch
from vramscope_analysis.diagnosis.peak_parts import peak_parts, phase_steps
from vramscope_analysis.evidence.columns import UNKNOWN

CATEGORIES = {
    "category.parameters_bytes": 4 * GIB,
    "category.optimizer_state_bytes": 8 * GIB,
    "category.buffers_bytes": 0,
    "category.gradients_bytes": 4 * GIB,
    "category.gradients_kept_bytes": 0,
}


def steps(peaks: list[int]) -> dict[str, list[int] | int]:
    return {
        **CATEGORIES,
        "reserved_bytes.all.current": 70 * GIB,
        "allocated_bytes.all.current": 16 * GIB,
        "step.peak_reserved_bytes": 70 * GIB,
        "step.peak_allocated_bytes": peaks,
        "step.peak_part": 1,
        "user.batch_size": 32,
    }


def test_the_highest_step_is_divided_and_its_parts_add_up() -> None:
    parts = peak_parts(made_rank(6, columns=steps([20 * GIB] * 3 + [40 * GIB] + [20 * GIB] * 2)))
    assert parts is not None
    assert parts.peak_bytes == 40 * GIB
    assert (parts.parameters, parts.optimizer_state, parts.gradients) == (4 * GIB, 8 * GIB, 0)
    assert parts.activations == 28 * GIB
    assert parts.batch == 32


def test_the_first_steps_do_not_count_they_lack_what_comes_with_the_first_step() -> None:
    parts = peak_parts(made_rank(4, columns=steps([70 * GIB, 70 * GIB, 30 * GIB, 20 * GIB])))
    assert parts is not None
    assert parts.peak_bytes == 30 * GIB
    assert peak_parts(made_rank(2, columns=steps([70 * GIB, 70 * GIB]))) is None


def test_an_evaluation_within_a_step_is_not_training() -> None:
    columns = steps([20 * GIB] * 4 + [60 * GIB] + [30 * GIB])
    rank = made_rank(6, columns=columns, stretches=[stretch("eval", 4)])
    parts = peak_parts(rank)
    assert parts is not None
    assert parts.peak_bytes == 30 * GIB
    assert phase_steps(rank, "eval") == {5}
    assert phase_steps(rank, "checkpoint") == set()


def test_what_is_not_known_is_none() -> None:
    columns = {"step.peak_allocated_bytes": 3 * GIB, "category.parameters_bytes": UNKNOWN}
    parts = peak_parts(made_rank(4, columns=columns))
    assert parts is not None
    assert (parts.parameters, parts.activations) == (None, None)
    assert (parts.batch, parts.peak_part) == (None, 0)
    assert peak_parts(made_rank(9, columns={})) is None
