"""Looks come when memory has risen, no more often than is asked for, and within a budget."""

from __future__ import annotations

import pytest

from vramscope.growth.pace import ANEW_NS, PROMPT_NS, SHARE, LookPace, spread

S = 1_000_000_000


def test_a_look_waits_for_memory_to_rise() -> None:
    pace = LookPace(1, 100, 0)
    assert pace.step_ended(100, 1)  # the first waits for nothing
    pace.looked(100, 0)
    assert not pace.step_ended(100, 2)
    assert not pace.step_ended(90, 3)
    assert pace.step_ended(101, 4)


def test_so_many_steps_lie_between_two_looks() -> None:
    pace = LookPace(3, 100, 0)
    assert [pace.step_ended(step, step) for step in range(4)] == [False, False, True, True]
    pace.looked(3, 0)
    assert [pace.step_ended(10 + step, step) for step in range(3)] == [False, False, True]


def test_after_a_fall_the_next_look_waits_for_nothing() -> None:
    pace = LookPace(1, 100, 0)
    pace.looked(100, 0)
    assert not pace.step_ended(50, 1)
    pace.begin_anew()
    assert pace.step_ended(50, 2)


def test_then_looks_may_come_with_every_step_and_take_a_little_more() -> None:
    pace = LookPace(9, 100, 0)
    pace.looked(100, PROMPT_NS + S)
    pace.begin_anew()
    assert pace.step_ended(50, 1)
    pace.looked(50, ANEW_NS + 1)
    assert not pace.step_ended(60, 2)


def test_looks_stay_within_their_share_of_the_time() -> None:
    pace = LookPace(1, 100, 0)
    pace.looked(0, PROMPT_NS + S)
    enough_ns = round(S / SHARE)
    assert not pace.step_ended(1, enough_ns - 1000)
    assert pace.step_ended(1, enough_ns + 1000)
    assert not pace.may_take(S, enough_ns)
    assert pace.may_take(S, 2 * enough_ns + 1000)


def test_it_is_over_after_so_many_steps() -> None:
    pace = LookPace(1, 4, 0)
    pace.looked(100, 0)
    # Not with a look that nothing has risen for: what has grown before would seem not to.
    assert [pace.step_ended(100, step) for step in range(4)] == [False] * 4
    assert pace.is_over


@pytest.mark.parametrize(
    ("looks", "wanted", "numbers"),
    [(0, 4, []), (2, 4, [0, 1]), (4, 4, [0, 1, 2, 3]), (7, 4, [0, 2, 4, 6]), (9, 3, [0, 4, 8])],
)
def test_some_of_many_looks(looks: int, wanted: int, numbers: list[int]) -> None:
    assert spread(looks, wanted) == numbers
