"""The floor is what is known of the ends of steps, without the warm-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.step_floors import BASE, MIB, rank_of
from vramscope_analysis.diagnosis.floors import WARM_UP_ROWS, floors_of
from vramscope_analysis.evidence.columns import NO_ROWS, UNKNOWN, Rows

CATEGORIES = {
    "category.parameters_bytes": [100] * 20,
    "category.gradients_bytes": [20] * 20,
    "category.optimizer_state_bytes": [3] * 20,
    "category.buffers_bytes": [4] * 20,
}


def test_the_first_steps_of_a_job_are_left_out() -> None:
    assert len(floors_of(rank_of([BASE] * 20).steps)) == 20 - WARM_UP_ROWS


def test_of_a_job_that_was_attached_later_nothing_is_left_out() -> None:
    floors = floors_of(rank_of([BASE] * 20, first_step=5000).steps)
    assert (len(floors), int(floors.step[0])) == (20, 5000)


def test_rows_without_a_counter_are_left_out_and_gaps_in_numbers_are_kept() -> None:
    rows = rank_of([BASE, UNKNOWN, BASE + MIB], first_step=100).steps
    floors = floors_of(rows)
    assert floors.step.tolist() == [100, 102]
    assert floors.allocated.tolist() == [BASE, BASE + MIB]
    assert floors.row.tolist() == [0, 2]


def test_only_what_is_numbered_upwards_to_the_newest_counts() -> None:
    rows = rank_of([BASE] * 6, first_step=100).steps
    again = replace(rows, number=np.array([100, 101, 102, 50, 51, 52], np.int64))
    assert floors_of(again).step.tolist() == [50, 51, 52]


def test_named_memory_is_the_sum_of_all_categories_or_not_known() -> None:
    floors = floors_of(rank_of([BASE] * 20, first_step=9, columns=CATEGORIES).steps)
    assert floors.named is not None
    assert set(floors.named.tolist()) == {127.0}
    some = {name: CATEGORIES[name] for name in list(CATEGORIES)[:3]}
    assert floors_of(rank_of([BASE] * 20, first_step=9, columns=some).steps).named is None


def test_a_few_gaps_of_a_column_are_closed_and_many_make_it_unknown() -> None:
    blocks = [7, *[UNKNOWN] * 1, *[9] * 18]
    floors = floors_of(rank_of([BASE] * 20, blocks, first_step=9).steps)
    assert floors.blocks is not None
    assert floors.blocks.tolist() == [7, 7, *[9] * 18]
    blocks = [UNKNOWN] * 10 + [9] * 10
    assert floors_of(rank_of([BASE] * 20, blocks, first_step=9).steps).blocks is None


def test_nothing_is_known_of_a_rank_without_steps() -> None:
    assert len(floors_of(NO_ROWS)) == 0
    assert len(floors_of(Rows(np.zeros(3, np.int64)))) == 0
