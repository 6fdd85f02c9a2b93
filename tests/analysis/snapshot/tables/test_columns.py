from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.runs.run import Coded
from vramscope_analysis.snapshot.tables.columns import (
    Column,
    FlagColumn,
    IntegerColumn,
    ListColumn,
    PairColumn,
    TextColumn,
    count_of,
    rows_of,
)
from vramscope_analysis.snapshot.tables.layout import Positions


def where(row: int) -> str:
    return f"rows[{row}]"


def coded(*values: Any) -> Coded:
    """The values as a run has them: numbers of objects."""
    objects = list(dict.fromkeys([*values, "not used"]))
    return Coded(np.array([objects.index(value) for value in values], np.int32), objects)


ROWS: list[Positions] = [slice(2, 4), np.array([2, 3])]


@pytest.mark.parametrize("rows", ROWS)
def test_integers(rows: Positions) -> None:
    column = IntegerColumn("size", 5, np.int64)
    column.put(rows, [-5, 2**62], where)
    column.put(slice(0, 2), Coded(np.array([7, 8])), where)
    assert column.built().tolist() == [7, 8, -5, 2**62, 0]


@pytest.mark.parametrize(
    ("values", "got"),
    [
        ([1, -1], "got -1"), ([1, 2**63], f"got {2**63}"), ([1, True], "got True"),
        ([1, 2.0], "got 2.0"), ([1, None], "got None"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", ROWS)
def test_other_values_than_integers(values: list[Any], got: str, rows: Positions) -> None:
    column = IntegerColumn("size", 5, np.int64, least=0)
    with pytest.raises(SnapshotError) as raised:
        column.put(rows, values, where)
    expected = "expected an integer (at least 0, at most 9223372036854775807)"
    assert str(raised.value) == f"rows[3].size: {expected}, {got}"


def test_integers_of_runs_are_checked_too() -> None:
    column = IntegerColumn("size", 5, np.int32, least=0)
    for wrong in (Coded(np.array([1, -1])), Coded(np.array([1, 2**31])), coded(1, None)):
        with pytest.raises(SnapshotError, match=r"rows\[3\].size: expected an integer"):
            column.put(slice(2, 4), wrong, where)


def test_one_column_for_two_keys() -> None:
    column = IntegerColumn("addr", 2, np.uint64)
    other = IntegerColumn("device_free", 2, np.uint64, into=column)
    column.put(slice(0, 1), [5], where)
    other.put(slice(1, 2), [2**64 - 1], where)
    assert column.built().tolist() == [5, 2**64 - 1]
    with pytest.raises(SnapshotError, match="device_free: expected"):
        other.put(slice(1, 2), [-1], where)


def test_flags() -> None:
    column = FlagColumn("is_expandable", 4)
    column.put(slice(0, 2), [True, False], where)
    column.put(slice(2, 4), coded(True, False), where)
    assert column.built().tolist() == [True, False, True, False]
    assert column.built().dtype == np.bool_


def test_texts_are_numbered_once() -> None:
    texts: dict[str, int] = {}
    column, other = TextColumn("a", 5, texts), TextColumn("b", 2, texts)
    column.put(slice(0, 2), ["x", "y"], where)
    column.put(slice(2, 4), coded("y", "z"), where)
    column.put(slice(3, 4), coded("y"), where)
    other.put(slice(0, 1), ["z"], where)
    assert column.built().tolist() == [0, 1, 1, 1, -1]
    assert other.built().tolist() == [2, -1]
    assert list(texts) == ["x", "y", "z"]


def test_pairs() -> None:
    column = PairColumn("pool_id", 4)
    assert column.pairs().tolist() == [[-1, -1]] * 4
    column.put(slice(0, 1), [(0, 1)], where)
    column.put(slice(1, 3), coded((0, 1), (5, 2**62)), where)
    assert column.pairs().tolist() == [[0, 1], [0, 1], [5, 2**62], [-1, -1]]
    assert column.pairs().dtype == np.int64


def test_equal_pairs_take_no_memory() -> None:
    column = PairColumn("pool_id", 3)
    column.put(slice(0, 3), [(0, 1)] * 3, where)
    assert column.pairs().tolist() == [[0, 1]] * 3
    assert column.pairs().strides[0] == 0
    assert PairColumn("pool_id", 0).pairs().shape == (0, 2)


def test_lists() -> None:
    column = ListColumn("blocks", 3)
    column.put(np.array([2, 0]), [[1], [2]], where)
    assert column.lists == [[2], [], [1]]


@pytest.mark.parametrize(
    ("column", "wrong", "expected"),
    [
        (FlagColumn("k", 3), 1, "True or False"),
        (TextColumn("k", 3, {}), 5, "a text"),
        (PairColumn("k", 3), (0, -1), "a tuple of two integers of at least 0"),
        (ListColumn("k", 3), (1,), "a list"),
    ],
)
def test_wrong_values_are_named(column: Column, wrong: Any, expected: str) -> None:
    for values in ([wrong], coded(wrong)):
        with pytest.raises(SnapshotError, match=rf"rows\[1\].k: expected {expected}, got"):
            column.put(slice(1, 2), values, where)


def test_positions() -> None:
    assert rows_of(slice(2, 5)).tolist() == [2, 3, 4]
    assert rows_of(np.array([5, 1])).tolist() == [5, 1]
    assert count_of(slice(2, 5)) == 3
    assert count_of(np.array([5, 1])) == 2
