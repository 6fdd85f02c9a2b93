"""How often steps are split follows from what that costs."""

from __future__ import annotations

import random

from vramscope.peaks.split_rate import SplitRate

MS = 1_000_000


def run(rate: SplitRate, steps: int, duration_ns: int, cost_ns: int) -> list[bool]:
    split: list[bool] = []
    for _ in range(steps):
        split.append(rate.is_due())
        rate.step_ended(duration_ns, cost_ns if split[-1] else None)
    return split


def test_the_first_step_is_not_split_and_the_second_is() -> None:
    assert run(SplitRate(0.01), 2, 100 * MS, 100_000) == [False, True]


def test_the_share_that_splitting_adds_stays_within_the_budget() -> None:
    for budget in (0.0005, 0.01):
        rate = SplitRate(budget)
        run(rate, 10, 10 * MS, 150_000)
        split = run(rate, 50_000, 10 * MS, 150_000)
        assert 0 < sum(split) * 150_000 <= budget * 50_000 * 10 * MS


def test_long_steps_are_all_split() -> None:
    assert sum(run(SplitRate(0.0005), 1000, 2000 * MS, 150_000)) == 999


def test_it_follows_when_splitting_turns_out_dear() -> None:
    rate = SplitRate(0.001)
    run(rate, 1000, 10 * MS, 20_000)
    cheap = rate.interval
    run(rate, 1000, 10 * MS, 400_000)
    assert rate.interval > 10 * cheap


def test_a_few_long_steps_do_not_make_it_split_more() -> None:
    rate = SplitRate(0.0005)
    rng = random.Random(1)
    split = 0
    for number in range(20_000):
        duration_ns = 5000 * MS if number % 10 == 0 else 10 * MS + rng.randrange(MS)
        split += rate.is_due()
        rate.step_ended(duration_ns, 150_000 if rate.is_due() else None)
    assert split * 150_000 <= 0.0005 * 20_000 * 11 * MS
