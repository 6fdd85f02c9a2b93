"""Looks come when memory has risen, no more often than is asked for, and within a budget."""

from __future__ import annotations

import pytest

from vramscope.growth.pace import ANEW_NS, PROMPT_NS, SHARE, LookPace, spread

S = 1_000_000_000
MS = 1_000_000


def may_look(pace: LookPace, now_ns: int = 0) -> bool:
    """Whether there may be a look at the end of one more step."""
    pace.step_ended()
    return pace.may_look(now_ns)


def test_a_look_waits_for_memory_to_rise() -> None:
    pace = LookPace(1, 100, 0)
    assert pace.has_risen(100)  # the first waits for nothing
    pace.looked(100, 0)
    assert not pace.has_risen(100)
    assert not pace.has_risen(90)
    assert pace.has_risen(101)
    pace.begin_anew()
    assert pace.has_risen(50)


def test_so_many_steps_lie_between_two_looks() -> None:
    pace = LookPace(3, 100, 0)
    assert [may_look(pace) for _ in range(4)] == [False, False, True, True]
    pace.looked(3, 0)
    assert [may_look(pace) for _ in range(3)] == [False, False, True]


def test_after_a_fall_looks_may_come_with_every_step_and_take_a_little_more() -> None:
    pace = LookPace(9, 100, 0)
    pace.spent_ns = PROMPT_NS + S
    pace.looked(100, 0)
    pace.begin_anew()
    assert may_look(pace)
    pace.looked(50, 0)
    pace.spent_ns += ANEW_NS + 1
    assert not may_look(pace)


def test_looks_stay_within_their_share_of_the_time() -> None:
    pace = LookPace(1, 100, 0)
    pace.spent_ns = PROMPT_NS + S
    enough_ns = round(S / SHARE)
    assert not may_look(pace, enough_ns - 1000)
    assert may_look(pace, enough_ns + 1000)
    # The next one will take as long as the last one.
    pace.looked(0, 10 * MS)
    assert not may_look(pace, enough_ns + 499 * MS)
    assert may_look(pace, enough_ns + 501 * MS)


@pytest.mark.parametrize("step_ms", [10, 20, 50])
def test_what_is_begun_when_there_is_time_left_keeps_all_of_it_within_the_share(
    step_ms: int,
) -> None:
    """Whatever looks and the search take, and however long the steps are."""
    pace = LookPace(1, 10_000, 0)
    pace.spent_ns = 3 * MS  # what it took to begin
    look_ns, search_ns = 2 * MS, 15 * MS
    looks = now_ns = 0
    while True:
        now_ns += step_ms * MS
        if looks < 4 and may_look(pace, now_ns) and pace.has_risen(now_ns):
            pace.looked(now_ns, look_ns)
            pace.spent_ns += look_ns
            looks += 1
        if looks == 4 and pace.left_ns(now_ns) >= search_ns:
            break
    pace.spent_ns += look_ns + search_ns
    assert 0.8 * SHARE < pace.spent_ns / now_ns <= SHARE


def test_what_was_taken_beyond_the_share_is_owed() -> None:
    pace = LookPace(1, 100, S)
    assert pace.owed_ns(S) == 0
    pace.spent_ns += 100 * MS
    assert pace.owed_ns(S) == round(100 * MS / SHARE)
    assert pace.owed_ns(S + round(40 * MS / SHARE)) == round(60 * MS / SHARE)
    assert pace.owed_ns(9 * S) == 0


def test_it_is_over_after_so_many_steps() -> None:
    pace = LookPace(1, 4, 0)
    for _ in range(3):
        pace.step_ended()
    assert not pace.is_over
    pace.step_ended()
    assert pace.is_over


@pytest.mark.parametrize(
    ("looks", "wanted", "numbers"),
    [(0, 4, []), (2, 4, [0, 1]), (4, 4, [0, 1, 2, 3]), (7, 4, [0, 2, 4, 6]), (9, 3, [0, 4, 8])],
)
def test_some_of_many_looks(looks: int, wanted: int, numbers: list[int]) -> None:
    assert spread(looks, wanted) == numbers
