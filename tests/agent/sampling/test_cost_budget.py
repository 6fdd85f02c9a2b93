"""The rate falls when sampling is dear, and recovers when it is not."""

from __future__ import annotations

import pytest

from vramscope.sampling.cost_budget import CostBudget

SECOND = 1_000_000_000


def run(budget: CostBudget, seconds: float, turn_cpu_ns: int, now_ns: int = 0) -> int:
    """Turn at the budget's own rate for a while; return the time at the end."""
    end_ns = now_ns + seconds * SECOND
    while now_ns < end_ns:
        now_ns += round(SECOND / budget.rate_hz)
        budget.account(turn_cpu_ns, now_ns)
    return now_ns


def test_cheap_turns_keep_the_wanted_rate() -> None:
    budget = CostBudget(10.0, 0.001)
    run(budget, 60, 50_000)
    assert budget.rate_hz == 10.0


def test_dear_turns_lower_the_rate_until_the_cost_fits() -> None:
    budget = CostBudget(10.0, 0.001)
    run(budget, 30, 200_000)
    assert budget.rate_hz == pytest.approx(5.0, rel=0.05)


def test_the_rate_recovers_when_turns_get_cheap() -> None:
    budget = CostBudget(10.0, 0.001)
    now_ns = run(budget, 30, 500_000)
    assert budget.rate_hz < 3
    run(budget, 60, 20_000, now_ns)
    assert budget.rate_hz == 10.0


def test_it_never_falls_below_one_sample_a_second() -> None:
    budget = CostBudget(10.0, 0.001)
    run(budget, 120, 1_000_000_000)
    assert budget.rate_hz == 1.0


def test_the_first_turn_is_not_held_against_it() -> None:
    budget = CostBudget(10.0, 0.001)
    assert not budget.account(2 * SECOND, 0)
    run(budget, 20, 10_000, 0)
    assert budget.rate_hz == 10.0


def test_no_budget_is_no_limit() -> None:
    budget = CostBudget(100.0, 0.0)
    run(budget, 30, 10_000_000)
    assert budget.rate_hz == 100.0


def test_a_new_wish_is_bounded_by_what_the_old_one_could_afford() -> None:
    budget = CostBudget(10.0, 0.001)
    now_ns = run(budget, 30, 200_000)
    budget.set_wanted_rate_hz(50.0)
    run(budget, 60, 200_000, now_ns)
    assert budget.rate_hz == pytest.approx(5.0, rel=0.05)
    budget.set_wanted_rate_hz(2.0)
    assert budget.rate_hz == 2.0
