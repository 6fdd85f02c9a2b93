"""Whatever a file says, what comes out has the right type and is bounded."""

from __future__ import annotations

import pytest

from vramscope_analysis.evidence import told_values
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.told_values import (
    told_amount,
    told_amounts,
    told_entries,
    told_rows,
    told_text,
    told_whole,
)


def test_integers_are_those_that_a_column_can_hold() -> None:
    assert [
        told_whole(each) for each in (5, -5, 5.0, True, "5", 1 << 64, UNKNOWN, float("nan"))
    ] == [
        5,
        -5,
        5,
        None,
        None,
        None,
        None,
        None,
    ]
    assert (told_amount(-1), told_amount(0)) == (None, 0)


def test_text_is_cut_and_has_nothing_that_moves_a_cursor() -> None:
    assert told_text("a\x1b[2Jb\u202ec\nd", 100) == "a\ufffd[2Jb\ufffdc\nd"
    assert (told_text("abc", 2), told_text(7)) == ("ab", "")


def test_amounts_have_names_and_are_known() -> None:
    assert told_amounts({"a": 1, "b": -1, "c": "x", 3: 4, "": 5}) == {"a": 1}
    assert told_amounts([1]) == {}


def test_entries_are_plain_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_values, "MAX_ENTRIES", 2)
    found = told_entries([{"a": [1, 2, 3], "b": {"c": float("inf")}}, 7, {"d": True}])
    assert found == ({"a": [1, 2], "b": {"c": None}},)
    deep: list[object] = []
    for _ in range(50):
        deep = [deep]
    assert told_entries([{"a": deep}])[0]["a"] == [[[[[None]]]]]


def test_rows_keep_only_columns_of_their_length() -> None:
    rows = told_rows(
        {
            "time_ns": [10, 20, None],
            "number": [1, 2, 3],
            "columns": {"a": [1, None, "x"], "b": [0.5, None, 2], "c": [1], 5: [1, 2, 3]},
        }
    )
    assert rows.time_ns.tolist() == [10, 20, UNKNOWN]
    assert rows.number is not None
    assert rows.number.tolist() == [1, 2, 3]
    assert set(rows.columns) == {"a", "b"}
    assert [rows.columns[name].dtype.kind for name in "ab"] == ["i", "f"]
    assert str(rows.numbers("a").tolist()) == "[1.0, nan, nan]"
    assert str(rows.numbers("b").tolist()) == "[0.5, nan, 2.0]"


@pytest.mark.parametrize("value", [None, [], {}, {"time_ns": 5}, {"time_ns": [], "columns": 5}])
def test_what_is_no_rows_is_none(value: object) -> None:
    assert len(told_rows(value)) == 0


def test_of_many_rows_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_values, "MAX_ROWS", 2)
    rows = told_rows({"time_ns": [1, 2, 3], "columns": {"a": [4, 5, 6]}, "number": [7, 8]})
    assert (rows.time_ns.tolist(), rows.columns["a"].tolist(), rows.number) == (
        [2, 3],
        [5, 6],
        None,
    )
