"""Steps that try kernels are told by what they leave in the counters, if there are few of them."""

from __future__ import annotations

from tests.support.made_ranks import Column, rows_of
from vramscope_analysis.diagnosis.trial_steps import trial_steps

STEPS = 60


def trials(**counters: list[int]) -> list[int]:
    """Numbers of the steps that try something, of what each counter has risen to."""
    columns: dict[str, Column] = {
        "num_alloc_retries": 0,
        "num_ooms": 0,
        "num_sync_all_streams": 0,
    }
    rows = rows_of(STEPS, columns | counters)
    assert rows.number is not None
    return [int(number) for number in rows.number[trial_steps(rows)]]


def rising(*steps: int, by: int = 1) -> list[int]:
    return [by * sum(step <= number for step in steps) for number in range(1, STEPS + 1)]


def test_a_request_that_failed_and_was_caught_is_a_trial() -> None:
    flushes = rising(20, 40, by=2)
    assert trials(num_ooms=rising(20, 40), num_alloc_retries=flushes) == [20, 40]


def test_a_cache_that_is_emptied_in_a_few_steps_is_a_trial() -> None:
    assert trials(num_sync_all_streams=rising(5, 33)) == [5, 33]


def test_a_flush_alone_is_none() -> None:
    flushes = rising(10, 20, 30, by=3)
    assert trials(num_alloc_retries=flushes, num_sync_all_streams=flushes) == []


def test_what_most_steps_do_is_how_the_job_works() -> None:
    assert trials(num_sync_all_streams=list(range(STEPS))) == []
    assert trials(num_ooms=rising(*range(2, STEPS, 3))) == []


def test_before_the_first_step_nothing_is_known() -> None:
    assert trials(num_ooms=[7] * STEPS) == []
    assert trial_steps(rows_of(0, {})).tolist() == []
    assert trial_steps(rows_of(3, {})).tolist() == [False] * 3
