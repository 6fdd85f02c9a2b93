"""One series is read out of a batch, without what is not known."""

from __future__ import annotations

import math

from tests.support.server_rows import make_rows
from vramscope_protocol.columns import UNKNOWN
from vramscope_server.policies.series_values import series_values


def test_values_with_their_times_and_steps() -> None:
    rows = make_rows("step", time_ns=[1, 2, 3], step=[7, 8, 9], a__b=[5, 3, 4])
    found = series_values(rows, "a.b")
    assert found is not None
    assert (found.kind, found.values, found.time_ns, found.steps) == (
        "step",
        [5, 3, 4],
        [1, 2, 3],
        [7, 8, 9],
    )
    assert (found.lowest, found.highest) == (3, 5)


def test_what_is_not_known_is_left_out() -> None:
    rows = make_rows(
        time_ns=[1, 2, 3], step=[7, 8, 9], a=[UNKNOWN, 3, UNKNOWN], b=[1.0, math.nan, 2.0]
    )
    found, other = series_values(rows, "a"), series_values(rows, "b")
    assert found is not None
    assert other is not None
    assert (found.values, found.time_ns, found.steps) == ([3], [2], [8])
    assert (other.values, other.time_ns) == ([1.0, 2.0], [1, 3])


def test_nothing_known() -> None:
    rows = make_rows(time_ns=[1], step=[1], a=[UNKNOWN])
    assert series_values(rows, "a") is None
    assert series_values(rows, "c") is None
