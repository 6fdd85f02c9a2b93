from __future__ import annotations

import random
from random import Random

from vramscope.transport.backoff import Backoff


def test_delays_double_up_to_the_longest_with_jitter_below() -> None:
    backoff = Backoff(first_s=0.5, longest_s=8.0, random=Random(1))
    delays = [backoff.next_s() for _ in range(10)]
    full = [0.5, 1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert all(half / 2 <= delay <= half for delay, half in zip(delays, full, strict=True))
    assert len(set(delays)) == 10


def test_after_a_reset_delays_are_short_again() -> None:
    backoff = Backoff(first_s=0.5, longest_s=8.0)
    for _ in range(5):
        backoff.next_s()
    backoff.reset()
    assert backoff.next_s() <= 0.5


def test_weeks_of_failures_stay_at_the_longest() -> None:
    backoff = Backoff(first_s=0.5, longest_s=15.0)
    backoff.failures = 10**6
    assert 7.5 <= backoff.next_s() <= 15.0


def test_the_jobs_random_numbers_are_left_alone() -> None:
    before = random.getstate()
    Backoff().next_s()
    assert random.getstate() == before
