"""Times never go backwards, and missed turns are skipped."""

from __future__ import annotations

import time

import pytest

from vramscope.sampling.clock import Clock, Deadlines

SECOND = 1_000_000_000


def test_epoch_time_is_right_and_ignores_a_wall_clock_that_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    assert abs(clock.time_ns() - time.time_ns()) < SECOND
    first = clock.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert clock.time_ns() >= first


def test_without_boottime_the_monotonic_clock_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(Clock().time_ns() - time.time_ns()) < SECOND


def test_turns_keep_their_beat_when_one_comes_late() -> None:
    deadlines = Deadlines(0.1, 0)
    assert deadlines.wait_s(0) == 0
    assert deadlines.take(0) == 0
    assert deadlines.wait_s(0) == pytest.approx(0.1)
    assert deadlines.take(130_000_000) == 0
    assert deadlines.wait_s(130_000_000) == pytest.approx(0.07)


def test_a_minute_without_a_turn_is_one_turn_and_not_six_hundred() -> None:
    deadlines = Deadlines(0.1, 0)
    deadlines.take(0)
    assert deadlines.take(60 * SECOND) == 599
    assert 0 < deadlines.wait_s(60 * SECOND) <= 0.1


def test_a_new_pace_holds_from_the_next_turn_on() -> None:
    deadlines = Deadlines(0.1, 0)
    deadlines.set_interval_s(1.0)
    deadlines.take(0)
    assert deadlines.interval_s == 1.0
    assert deadlines.wait_s(0) == pytest.approx(1.0)
