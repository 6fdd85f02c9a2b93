from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vramscope_server.commands.step_choice import MIN_LEAD, choose_step
from vramscope_server.registry.step_pace import RankPace


def step(
    *paces: RankPace, left_s: float = 30.0, attempt: int = 0, over: tuple[int, ...] = ()
) -> int:
    choice = choose_step(paces, left_s, attempt, over)
    assert choice is not None
    return choice.step


def test_about_one_and_a_half_seconds_ahead_of_the_farthest_rank() -> None:
    assert step(RankPace(100, 20.0, 0.0), RankPace(104, 20.0, 0.0)) == 134
    choice = choose_step([RankPace(100, 20.0, 0.0)], 30.0)
    assert choice is not None
    assert choice.due_s == 1.5


def test_at_least_three_steps_and_as_much_when_nothing_is_known() -> None:
    assert step(RankPace(100, 0.5, 0.0)) == 103
    assert step(RankPace(100, None, 0.0)) == 103
    assert step() == MIN_LEAD


def test_steps_that_take_long_are_not_waited_for_beyond_the_deadline() -> None:
    assert step(RankPace(100, 1 / 20, 0.0), left_s=30.0) == 101
    assert step(RankPace(100, 1 / 20, 0.0), left_s=600.0) == 103


def test_each_attempt_looks_farther_and_beyond_what_ranks_have_reached() -> None:
    rank = RankPace(100, 20.0, 0.0)
    assert [step(rank, attempt=attempt) for attempt in range(4)] == [130, 160, 220, 340]
    assert step(rank, attempt=1, over=(500, 400)) == 560


def test_steps_that_cannot_be_are_not_counted_on() -> None:
    assert choose_step([RankPace(2**62, 1.0, 0.0)], 30.0) is None
    assert choose_step([RankPace(1, 1e30, 1.0)], 30.0) is None
    assert choose_step([RankPace(1, 1.0, 1.0)], 30.0, over=(2**63 - 1,)) is None


PACES = st.builds(
    RankPace,
    st.integers(0, 10**9),
    st.none() | st.floats(1e-4, 1e4),
    st.floats(-10, 1e4),
)


@given(
    st.lists(PACES, max_size=8),
    st.floats(0, 3600),
    st.integers(0, 3),
    st.lists(st.integers(0, 10**9), max_size=3),
)
def test_the_step_is_always_still_to_come(
    paces: list[RankPace], left_s: float, attempt: int, over: list[int]
) -> None:
    choice = choose_step(paces, left_s, attempt, over)
    assert choice is not None
    assert choice.step > max((*(pace.reached for pace in paces), *over), default=0)
    assert choice.due_s >= 0
