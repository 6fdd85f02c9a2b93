from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.plain_values import PlainValues
from vramscope_analysis.snapshot.runs.run import Coded, Run, RunBlock, RunPart


def check(value: Any, **limits: int) -> None:
    PlainValues(Limits(**limits)).check(value, "settings")


def test_plain_data_passes() -> None:
    check({"a": [1, 2.5, "x", None, True, (1, (2,))], 3: {}})
    check("text")


@pytest.mark.parametrize("value", [{1}, b"x", object(), [range(3)], {"a": {"b": 1j}}])
def test_other_data_is_refused(value: object) -> None:
    with pytest.raises(SnapshotError, match="settings: expected plain data, got a "):
        check(value)


def test_what_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"a": (loop,)})
    with pytest.raises(SnapshotError, match="a list contains itself"):
        check({"loop": loop})


def test_depth_counts_through_what_is_known() -> None:
    values = PlainValues(Limits(depth=4))
    inner = [[[1]]]
    values.check(inner, "inner")
    values.check([inner], "deeper")
    with pytest.raises(SnapshotError, match="nested too deeply"):
        values.check([[inner]], "too deep")


def test_shared_values_count_each_time() -> None:
    shared = list(range(9))
    check([shared] * 9, unfolded_values=91)
    with pytest.raises(SnapshotError, match="unfolds to more than 90 values"):
        check([shared] * 9, unfolded_values=90)


def test_many_references_are_looked_at_once() -> None:
    value: list[Any] = [1]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(SnapshotError, match="unfolds"):
        check(value)


def test_runs_become_dicts() -> None:
    part = RunPart(("a",), 2, None, {"a": Coded(np.array([5, 6]))})
    kept = [1, Run(RunBlock([part]), 0, 2)]
    check({"x": kept})
    assert kept == [1, {"a": 5}, {"a": 6}]
    with pytest.raises(SnapshotError, match="too many values to keep"):
        check([Run(RunBlock([part]), 0, 2)], opcodes=3)
