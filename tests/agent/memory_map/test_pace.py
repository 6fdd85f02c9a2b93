"""The rate follows what a look costs, down to on request only."""

from __future__ import annotations

import pytest

from vramscope.memory_map.pace import (
    IDLE_FRACTION,
    IDLE_INTERVAL_S,
    WATCHED_FRACTION,
    WATCHED_INTERVAL_S,
    MapPace,
)

MS = 1_000_000


def test_a_cheap_look_comes_at_the_full_rate() -> None:
    pace = MapPace()
    pace.account_look(1 * MS)
    assert pace.interval_s(is_watched=True) == WATCHED_INTERVAL_S
    assert pace.interval_s(is_watched=False) == IDLE_INTERVAL_S


@pytest.mark.parametrize("cost_ms", [3, 10, 32, 70])
def test_the_interval_keeps_the_share_of_a_core(cost_ms: int) -> None:
    pace = MapPace()
    pace.account_look(cost_ms * MS)
    watched_s = pace.interval_s(is_watched=True)
    idle_s = pace.interval_s(is_watched=False)
    assert watched_s is not None
    assert idle_s is not None
    assert cost_ms / 1000 / watched_s == pytest.approx(WATCHED_FRACTION)
    assert cost_ms / 1000 / idle_s <= IDLE_FRACTION * 1.001


def test_what_would_come_too_seldom_comes_on_request_only_once_that_is_certain() -> None:
    pace = MapPace()
    pace.account_look(200 * MS)
    pace.account_look(200 * MS)
    assert pace.interval_s(is_watched=True) == 30.0
    assert pace.interval_s(is_watched=False) == 600.0
    pace.account_look(200 * MS)
    assert pace.interval_s(is_watched=True) is None
    assert pace.interval_s(is_watched=False) is None


def test_making_the_frame_counts_while_somebody_watches() -> None:
    pace = MapPace()
    pace.account_look(1 * MS)
    pace.account_frame(4 * MS)
    assert pace.interval_s(is_watched=True) == pytest.approx(0.005 / WATCHED_FRACTION)
    assert pace.interval_s(is_watched=False) == IDLE_INTERVAL_S
    assert pace.cost_ns == 5 * MS


def test_a_look_that_was_stopped_in_the_middle_does_not_slow_the_others() -> None:
    pace = MapPace()
    for cost_ms in (1, 1, 900, 1):
        pace.account_look(cost_ms * MS)
    assert pace.interval_s(is_watched=True) == WATCHED_INTERVAL_S
    assert pace.cost_ns == 1 * MS


def test_when_looks_become_dear_the_rate_follows_within_three_of_them() -> None:
    pace = MapPace()
    for cost_ms in (1, 1, 1, 1, 1, 20, 20, 20):
        pace.account_look(cost_ms * MS)
    assert pace.cost_ns == 20 * MS
    for _ in range(3):
        pace.account_look(1 * MS)
    assert pace.interval_s(is_watched=True) == WATCHED_INTERVAL_S


def test_a_first_look_at_very_many_blocks_waits_for_somebody_to_ask() -> None:
    pace = MapPace()
    assert pace.may_try(200_000)
    assert not pace.may_try(200_001)
    pace.account_look(1 * MS)
    assert pace.may_try(10**7)
