from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import Action, Limits, SnapshotError
from vramscope_analysis.snapshot.runs.run import Coded, Run, RunBlock, RunPart
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.columns import IntegerColumn
from vramscope_analysis.snapshot.tables.extra_column import WordColumn


def test_known_keys_fill_columns_and_others_are_kept() -> None:
    building = Building(Limits())
    rows = building.rows([{"size": 5, "new": "x"}, {"new": 7, "size": 6}, {"size": 8}], "rows")
    size = IntegerColumn("size", 3, np.int64)
    layout = building.fill(rows, {"size": size}, ("size",))

    assert size.built().tolist() == [5, 6, 8]
    assert layout.shapes == (("size", "new"), ("new", "size"), ("size",))
    assert layout.shape.tolist() == [0, 1, 2]
    assert layout.extras["new"].of(np.array([0, 1])) == ["x", 7]


def test_words_that_are_not_known_are_among_the_extras() -> None:
    building = Building(Limits())
    rows = building.rows([{"action": "oom"}, {"action": "new"}], "rows")
    action = WordColumn("action", 2, Action, building.values)
    layout = building.fill(rows, {"action": action}, ())
    assert layout.extras["action"].rows.tolist() == [1]


def test_of_two_keys_for_one_column_the_second_is_kept() -> None:
    building = Building(Limits())
    rows = building.rows([{"device_free": 1}, {"addr": 2, "device_free": 3}], "rows")
    addr = IntegerColumn("addr", 2, np.int64)
    free = IntegerColumn("device_free", 2, np.int64, into=addr)
    layout = building.fill(rows, {"addr": addr, "device_free": free}, ("addr|device_free",))

    assert addr.built().tolist() == [1, 2]
    assert layout.extras["device_free"].of(np.array([1])) == [3]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"a": 1}, {}], r"rows\[1\]: expected the key 'a.b', got no keys"),
        ([{"a": 1}, {"c": 1, "d": 2}], r"rows\[1\]: expected the key 'a.b', got 'c', 'd'"),
        ([{"a": 1, 5: 6}], r"rows\[0\]: expected text as key, got 5"),
    ],
)
def test_keys_are_checked(rows: list[Any], words: str) -> None:
    building = Building(Limits())
    with pytest.raises(SnapshotError, match=words):
        building.fill(building.rows(rows, "rows"), {}, ("a|b",))


@pytest.mark.parametrize("keeps_runs", [True, False])
def test_runs_are_given_back_when_no_one_else_has_them(keeps_runs: bool) -> None:
    part = RunPart(("a",), 2, None, {"a": Coded(np.array([5, 6]))})
    building = Building(Limits(), keeps_runs=keeps_runs)
    rows = building.rows([Run(RunBlock([part]), 0, 2)], "rows")
    column = IntegerColumn("a", 2, np.int64)
    building.fill(rows, {"a": column}, ())

    assert column.built().tolist() == [5, 6]
    assert ("a" in part.columns) == keeps_runs


def test_rows_in_runs_count_like_others() -> None:
    run = Run(RunBlock([RunPart(("a",), 9, None, {"a": Coded(np.arange(9))})]), 0, 9)
    Building(Limits(), 10).rows([run, {}], "rows")
    with pytest.raises(SnapshotError, match=r"rows\[0\]: one entry is listed so often"):
        Building(Limits(), 9).rows([run, {}], "rows")


def test_a_table_is_a_list() -> None:
    with pytest.raises(SnapshotError, match="rows: expected a list, got a dict"):
        Building(Limits()).rows({}, "rows")
