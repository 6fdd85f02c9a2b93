"""A steady rise is told from steps, sawteeth, filling up, and noise: at every moment."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.made_ranks import MIB, rows_of
from vramscope_analysis.diagnosis.host_rise import MOST_ROWS, HostRise, host_rise, thinned
from vramscope_analysis.evidence.columns import Rows

SECOND_NS = 10**9
BASE = 2000 * MIB
SECONDS = 120


def rows(
    value: Callable[[int], float], seconds: int = SECONDS, steps_per_s: int | None = 20
) -> Rows:
    """A reading a second."""
    made = rows_of(seconds, {"x": [float(value(s)) for s in range(seconds)]}, every_ns=SECOND_NS)
    if steps_per_s is None:
        return Rows(made.time_ns, made.columns, np.zeros(seconds, np.int64))
    return Rows(made.time_ns, made.columns, steps_per_s * np.arange(seconds))


def judged(made: Rows) -> HostRise | None:
    return host_rise(made, made.numbers("x"))


def test_a_leak_is_found_within_half_a_minute_with_its_speed() -> None:
    leak = rows(lambda s: BASE + 10 * MIB * s)
    first = next(n for n in range(1, SECONDS) if judged(leak.before(n)) is not None)
    assert first <= 30
    rise = judged(leak)
    assert rise is not None
    assert rise.bytes_per_step is not None
    assert 0.8 * MIB / 2 < rise.bytes_per_step <= MIB / 2
    assert rise.since_step is not None
    assert 60 <= rise.since_step <= 80


def test_a_leak_that_begins_late_is_found_too() -> None:
    late = rows(lambda s: BASE + 10 * MIB * max(s - 300, 0), 360)
    rise = judged(late)
    assert rise is not None
    assert rise.since_step is not None
    assert rise.since_step >= 20 * 250
    assert judged(late.before(305)) is None


def test_where_steps_are_not_known_time_is() -> None:
    rise = judged(rows(lambda s: BASE + 10 * MIB * s, steps_per_s=None))
    assert rise is not None
    assert (rise.bytes_per_step, rise.since_step) == (None, None)
    assert rise.bytes_per_s > 8 * MIB


def noise(s: int) -> float:
    return float(np.random.default_rng(s).normal(0, 30)) * MIB


HARMLESS: dict[str, Callable[[int], float]] = {
    "flat": lambda s: BASE,
    "noise": lambda s: BASE + noise(s),
    "step": lambda s: BASE + (800 * MIB if s > 50 else 0),
    "steps": lambda s: BASE + (400 * MIB if s > 40 else 0) + (400 * MIB if s > 80 else 0),
    "saw": lambda s: BASE + 40 * MIB * (s % 11),
    "evaluations": lambda s: BASE + (900 * MIB if s % 40 > 30 else 0),
    "fills up": lambda s: BASE + 2000 * MIB * (1 - math.exp(-s / 2)),
    "falls": lambda s: BASE - 5 * MIB * s,
    "little": lambda s: BASE + 0.2 * MIB * s,
    "not known": lambda s: math.nan,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_no_false_alarm_at_any_moment(name: str) -> None:
    made = rows(HARMLESS[name])
    assert [n for n in range(1, SECONDS + 1) if judged(made.before(n)) is not None] == []


def test_what_has_filled_up_is_over() -> None:
    filling = rows(lambda s: BASE + 20 * MIB * min(s, 60), 180)
    assert judged(filling.before(60)) is not None
    assert judged(filling) is None


def test_a_gap_says_nothing() -> None:
    made = rows(lambda s: BASE + 10 * MIB * s)
    gap = Rows(
        np.concatenate([made.time_ns[:40], made.time_ns[40:] + 600 * SECOND_NS]),
        made.columns,
        made.number,
    )
    assert judged(gap.before(41)) is None
    assert judged(Rows(made.time_ns[:0], {"x": made.columns["x"][:0]})) is None


def test_of_many_rows_a_few_hundred_are_enough_and_the_newest_is_one() -> None:
    made = rows(lambda s: BASE + 10 * MIB * s, 5000)
    few = thinned(made, "x", "y")
    assert MOST_ROWS <= len(few) < 2 * MOST_ROWS
    assert (few.last("x"), list(few.columns)) == (made.last("x"), ["x"])
    assert judged(few) is not None
    assert len(thinned(made.before(0), "x")) == 0
    assert len(thinned(made.before(7), "x")) == 7
