from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import Action, Limits, SnapshotError
from vramscope_analysis.snapshot.plain_values import PlainValues
from vramscope_analysis.snapshot.runs.run import Coded
from vramscope_analysis.snapshot.tables.extra_column import ExtraColumn, WordColumn


def where(row: int) -> str:
    return f"rows[{row}]"


def values() -> PlainValues:
    return PlainValues(Limits())


def test_values_of_any_kind_come_back_by_row() -> None:
    column = ExtraColumn("future", values())
    kept: list[Any] = [5, -(2**63), 2**63, "a", None, True, 1.5, [1], "a"]
    column.put(np.arange(20, 29), kept, where)
    column.put(slice(10, 12), Coded(np.array([7, 8])), where)
    column.put(slice(0, 3), Coded(np.array([0, 1, 0], np.int32), ["b", ("c",)]), where)
    extra = column.extra()

    assert extra.rows.tolist() == [0, 1, 2, 10, 11, *range(20, 29)]
    assert extra.of(np.arange(20, 29)) == kept
    assert extra.of(np.array([0, 1, 2, 10, 11])) == ["b", ("c",), "b", 7, 8]
    assert list(extra.objects).count("a") == 1


def test_nothing_was_put() -> None:
    assert not ExtraColumn("future", values())


def test_values_are_checked() -> None:
    column = ExtraColumn("future", values())
    with pytest.raises(SnapshotError, match="future: expected plain data, got a set"):
        column.put(slice(0, 1), [{1}], where)
    with pytest.raises(SnapshotError, match="future: expected plain data, got a set"):
        column.put(slice(0, 1), Coded(np.array([0], np.int32), [{1}]), where)


def test_words_become_numbers_and_others_are_kept() -> None:
    column = WordColumn("action", 6, Action, values())
    column.put(slice(0, 2), ["oom", "dreamt"], where)
    column.put(slice(2, 5), Coded(np.array([0, 1, 0], np.int32), ["alloc", "other"]), where)
    words = [Action.OOM, Action.OTHER, Action.ALLOC, Action.OTHER, Action.ALLOC, Action.OTHER]

    assert column.built().tolist() == words
    assert column.aside.extra().rows.tolist() == [1, 3]
    assert column.aside.extra().of(np.array([1, 3])) == ["dreamt", "other"]


def test_other_values_are_no_words() -> None:
    column = WordColumn("action", 6, Action, values())
    for wrong in ([5], Coded(np.array([5])), Coded(np.array([0], np.int32), [None])):
        with pytest.raises(SnapshotError, match=r"rows\[1\].action: expected a word, got"):
            column.put(slice(1, 2), wrong, where)
    assert not column.aside
