"""Which steps are evidence of what a batch needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_batches import FIXED, GRADIENTS, STATE, batch_rank, line, planned
from tests.support.made_ranks import GIB, stretch
from vramscope_analysis.batch.batch_steps import batch_steps
from vramscope_analysis.evidence.columns import UNKNOWN


def test_the_first_steps_and_those_after_another_size_do_not_count() -> None:
    found = batch_steps(batch_rank(planned((8, 6), (16, 5))))
    assert found.sizes.tolist() == [8] * 4 + [16] * 4
    assert found.tried == [8, 16]
    assert (found.current, found.passes, found.reason) == (16, 1, None)
    assert set(found.extra[:4]) == {line(8) - FIXED}


def test_a_step_without_the_optimizers_state_does_not_count() -> None:
    state = [0] * 6 + [STATE] * 6
    found = batch_steps(batch_rank([8] * 12, columns={"category.optimizer_state_bytes": state}))
    # The first with it at its end began without it.
    assert len(found) == 5


def test_kept_gradients_are_there_whatever_the_batch_is() -> None:
    kept = {"category.gradients_kept_bytes": GRADIENTS}
    found = batch_steps(batch_rank([8] * 8, columns=kept))
    assert set(found.fixed) == {FIXED + GRADIENTS}
    assert set(found.gradients) == {0}


def test_an_evaluation_does_not_count() -> None:
    found = batch_steps(batch_rank([8] * 10, stretches=[stretch("eval", 5)]))
    assert len(found) == 7


def test_blocks_that_wait_for_a_stream_are_part_of_what_is_needed() -> None:
    found = batch_steps(batch_rank([8] * 8, columns={"step.peak_active_bytes": line(8) + GIB}))
    assert set(found.peaks) == {line(8) + GIB}


@pytest.mark.parametrize(
    ("sizes", "columns", "reason"),
    [
        ([], {}, "no_steps"),
        ([8] * 20, {"step.batch_size": UNKNOWN}, "no_batch"),
        ([8] * 20, {"step.peak_allocated_bytes": UNKNOWN}, "no_peaks"),
        ([8] * 4, {}, "too_few"),
        (list(range(8, 40)), {}, "changing"),
    ],
)
def test_why_there_is_no_evidence(sizes: list[int], columns: Any, reason: str) -> None:
    assert batch_steps(batch_rank(sizes, columns=columns)).reason == reason
