"""Advice with a replayed window: what segments waste is known, what steps told stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.made_batches import batch_rank
from tests.support.made_recordings import MIB
from tests.support.made_windows import SAMPLE, WEIGHTS, real_peak, really_fits, scaled
from vramscope_analysis.batch.batch_advice import BatchAdvice, batch_advice
from vramscope_analysis.batch.refined_advice import refined_advice

LIMIT = 600 * MIB
ALLOWED = int(0.95 * LIMIT)
FIXED = 3 * sum(WEIGHTS)
COLUMNS = {
    "category.parameters_bytes": sum(WEIGHTS),
    "category.optimizer_state_bytes": 2 * sum(WEIGHTS),
    "category.gradients_bytes": sum(WEIGHTS),
}


def advised(peak: Callable[[int], int] = real_peak) -> BatchAdvice:
    found = batch_advice(batch_rank([4] * 8 + [8] * 8, peak, columns=COLUMNS, total_bytes=LIMIT))
    assert isinstance(found, BatchAdvice), found
    return found


def test_the_advice_is_what_the_training_can_do_with_that_room() -> None:
    found = refined_advice(advised(), scaled(8), 8)
    largest = max(
        n for n in range(9, 200) if really_fits(n, ALLOWED, before=8) and really_fits(n, ALLOWED)
    )
    assert 0.95 * largest <= found.batch
    assert really_fits(found.batch, LIMIT, before=8)
    assert really_fits(found.batch, LIMIT)
    assert found.low <= found.batch
    assert found.is_replayed


def test_a_window_of_another_size_says_the_same() -> None:
    small = refined_advice(advised(), scaled(4), 4)
    large = refined_advice(advised(), scaled(8), 8)
    assert small.batch == pytest.approx(large.batch, rel=0.03)


def test_where_steps_were_longer_than_those_recorded_the_steps_count() -> None:
    def longer(size: int) -> int:
        return FIXED + 2 * (real_peak(size) - FIXED)

    window = scaled(8)
    usual, found = refined_advice(advised(), window, 8), refined_advice(advised(longer), window, 8)
    assert found.batch == pytest.approx(usual.batch / 2, rel=0.15)


def test_a_window_that_needs_no_more_than_what_never_changes_is_refused() -> None:
    def larger(size: int) -> int:
        return 500 * MIB + size * sum(SAMPLE)

    constant = {**COLUMNS, "category.parameters_bytes": 450 * MIB}
    told = batch_advice(batch_rank([8] * 8, larger, columns=constant, total_bytes=LIMIT * 2))
    assert isinstance(told, BatchAdvice)
    with pytest.raises(ValueError, match="a window that needs more"):
        refined_advice(told, scaled(8), 8)
