"""Rows by column: what is not known stays so."""

from __future__ import annotations

import numpy as np

from vramscope_analysis.evidence.columns import UNKNOWN, Rows


def rows() -> Rows:
    return Rows(
        np.array([1, 2, 3]),
        {"a": np.array([5, UNKNOWN, 7]), "b": np.array([0.5, np.nan, np.nan])},
        np.array([10, 11, 12]),
    )


def test_what_is_not_known_is_nan_and_a_missing_column_is_not_known_at_all() -> None:
    assert str(rows().numbers("a").tolist()) == "[5.0, nan, 7.0]"
    assert str(rows().numbers("b").tolist()) == "[0.5, nan, nan]"
    assert str(rows().numbers("c").tolist()) == "[nan, nan, nan]"


def test_the_newest_value_is_the_last_that_is_known() -> None:
    assert (rows().last("a"), rows().last("b"), rows().last("c")) == (7, 0, None)


def test_before_shows_what_was_known_then() -> None:
    early = rows().before(2)
    assert (len(early), early.last("a")) == (2, 5)
    assert early.number is not None
    assert early.number.tolist() == [10, 11]


def test_after_leaves_out_what_came_first() -> None:
    late = rows().after(-1)
    assert (len(late), late.last("a")) == (1, 7)
    assert late.number is not None
    assert late.number.tolist() == [12]
