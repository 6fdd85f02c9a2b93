from __future__ import annotations

import pytest

from vramscope_server.registry.step_pace import RankPace, StepPace

S = 10**9


def test_nothing_is_known_before_the_first_row() -> None:
    pace = StepPace()
    assert pace.pace(5 * S) is None
    pace.take(7, 1 * S, 100 * S)
    assert pace.pace(101 * S) == RankPace(7, None, 1.0)


def test_the_pace_is_that_of_the_ranks_own_clock() -> None:
    pace = StepPace()
    for number in range(5):
        pace.take(10 + number, number * S // 4, 900 * S)  # received all at once
    known = pace.pace(900 * S)
    assert known == RankPace(14, 4.0, 0.0)


def test_only_the_last_advances_count_and_rows_of_the_same_step_do_not() -> None:
    pace = StepPace()
    for number in range(100):  # slow at first: validation, compilation
        pace.take(number, number * 10 * S, 0)
    for number in range(32):
        pace.take(100 + number // 2, 1000 * S + number * S, 50 * S)
    known = pace.pace(50 * S)
    assert known is not None
    assert known.step == 115
    assert known.rate_hz == pytest.approx(0.5)


def test_rows_of_steps_and_of_samples_come_by_turns() -> None:
    pace = StepPace()
    for number in range(20):
        # The last sample of a lot is of before its last step, and of the same or the one before.
        received_ns = number * S + S // 2
        pace.take(10 * number, number * S, received_ns)
        pace.take(10 * number - number % 2, number * S - S // 20, received_ns + S // 10)
    assert pace.pace(20 * S) == RankPace(190, 10.0, 0.5)


def test_a_rank_that_tells_the_same_step_again_stands_still() -> None:
    pace = StepPace()
    pace.take(10, 1 * S, 1 * S)
    pace.take(20, 2 * S, 2 * S)
    pace.take(20, 5 * S, 5 * S)
    assert pace.pace(5 * S) == RankPace(20, 10.0, 0.0)


def test_a_rank_that_counts_anew_or_whose_clock_goes_back_is_learnt_anew() -> None:
    for step, time_ns in ((3, 20 * S), (13, 4 * S)):
        pace = StepPace()
        pace.take(10, 5 * S, 0)
        pace.take(12, 6 * S, 0)
        pace.take(step, time_ns, 0)
        assert pace.pace(0) == RankPace(step, None, 0.0)


def test_where_a_rank_is_by_now() -> None:
    assert RankPace(100, 10.0, 0.25).reached == 103
    assert RankPace(100, None, 9.0).reached == 100
    assert RankPace(100, 10.0, -5.0).reached == 100  # the clock was set back
    # Silent for minutes: it evaluates, it does not go on.
    assert RankPace(100, 10.0, 600.0).reached == 120
