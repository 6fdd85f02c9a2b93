"""For how long a condition holds: from the first value that it holds for, without a break."""

from __future__ import annotations

from typing import Any

from tests.support.server_rows import make_rows
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import BatchKind
from vramscope_server.policies.definition import Hold, SeriesCondition
from vramscope_server.policies.holding import GAP_NS, Holding
from vramscope_server.policies.series_values import series_values

S = 10**9
ABOVE = SeriesCondition("a", ">", 10)
BELOW = SeriesCondition("a", "<", 10)


def take(
    holding: Holding,
    values: list[Any],
    start_s: float,
    *,
    step: int = 0,
    kind: BatchKind = "sample",
    condition: SeriesCondition = ABOVE,
) -> None:
    """One value a second, from ``start_s`` on."""
    count = len(values)
    rows = make_rows(
        kind,
        time_ns=[int((start_s + i) * S) for i in range(count)],
        step=[step + (i if kind == "step" else 0) for i in range(count)],
        a=values,
    )
    batch = series_values(rows, "a")
    if batch is not None:
        holding.take(batch, condition)


def test_seconds_count_from_the_first_value_that_is_above() -> None:
    holding = Holding()
    take(holding, [1, 11, 12], 100)
    assert holding.held_s == 1
    take(holding, [13, 14], 103)
    assert holding.held_s == 3
    assert not holding.is_met(Hold(seconds=4))
    take(holding, [15], 105)
    assert holding.is_met(Hold(seconds=4))
    assert holding.value == 15


def test_one_value_that_is_not_above_begins_it_anew() -> None:
    holding = Holding()
    take(holding, [11, 12, 10, 13, 14], 100)
    assert holding.held_s == 1
    take(holding, [15, 10], 105)
    assert not holding.is_met(None)
    assert holding.held_s is None


def test_below() -> None:
    holding = Holding()
    take(holding, [10, 9, 8], 100, condition=BELOW)
    assert holding.held_s == 1
    take(holding, [10], 103, condition=BELOW)
    assert not holding.is_met(None)


def test_what_is_not_known_neither_holds_nor_ends_it() -> None:
    holding = Holding()
    take(holding, [11, UNKNOWN, UNKNOWN, 12], 100)
    assert holding.held_s == 3
    take(holding, [UNKNOWN], 104)
    assert holding.held_s == 3


def test_steps_count_whole_ones() -> None:
    holding = Holding()
    take(holding, [1, 11, 12], 100, step=5, kind="step")
    assert holding.held_steps == 2  # those of steps 6 and 7
    assert holding.is_met(Hold(steps=2))
    assert not holding.is_met(Hold(steps=3))


def test_steps_by_samples_are_those_that_were_finished_since() -> None:
    holding = Holding()
    take(holding, [11], 100, step=5)
    assert holding.held_steps == 0
    take(holding, [11], 101, step=7)
    assert holding.held_steps == 2


def test_another_life_or_a_long_gap_begins_it_anew() -> None:
    for start_s, step in ((100 + GAP_NS / S + 2, 50), (102, 3), (50, 50)):
        holding = Holding()
        take(holding, [11, 11], 100, step=50)
        take(holding, [11], start_s, step=step)
        assert holding.held_s == 0


def test_no_time_at_all_is_enough_without_a_hold() -> None:
    holding = Holding()
    assert not holding.is_met(None)
    take(holding, [11], 100)
    assert holding.is_met(None)
    assert holding.is_met(Hold(seconds=0))


def test_what_is_looked_at_now_and_then() -> None:
    holding = Holding()
    holding.note(True, 10 * S, 4)
    holding.note(True, 15 * S, 9)
    assert (holding.held_s, holding.held_steps) == (5, 5)
    holding.note(False, 16 * S, 9)
    assert not holding.is_met(None)
    holding.note(True, 17 * S, 9)
    assert holding.held_s == 0
    holding.note(True, 18 * S, 2)  # steps are counted anew
    assert holding.held_steps == 0
