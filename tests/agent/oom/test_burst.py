from __future__ import annotations

from vramscope.oom.burst import FIRST_PAUSE_S, FULL_AT_FIRST, LIGHT_PAUSE_S, LONGEST_PAUSE_S, Burst


def test_the_first_are_full_and_then_one_is_after_a_pause_that_doubles() -> None:
    burst = Burst()
    assert [burst.decide(0.0) for _ in range(FULL_AT_FIRST)] == ["full"] * FULL_AT_FIRST
    pause_s = FIRST_PAUSE_S
    now_s = 0.0
    for _ in range(12):
        assert burst.decide(now_s + pause_s - 0.01) == "light"
        now_s += pause_s
        assert burst.decide(now_s) == "full"
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    assert pause_s == LONGEST_PAUSE_S


def test_of_hundreds_a_second_some_are_only_counted() -> None:
    burst = Burst()
    decided = [burst.decide(number // 4 * (LIGHT_PAUSE_S * 1.01)) for number in range(400)]
    assert decided.count("full") == FULL_AT_FIRST
    assert decided.count("light") == 100
    assert burst.skipped == 400 - 100 - FULL_AT_FIRST
    assert burst.take_skipped() == 400 - 100 - FULL_AT_FIRST
    assert burst.take_skipped() == 0
