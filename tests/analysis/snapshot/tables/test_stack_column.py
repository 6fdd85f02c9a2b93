from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.runs.run import Coded
from vramscope_analysis.snapshot.tables.stack_column import StackColumn
from vramscope_analysis.snapshot.tables.stack_table import StackTable

FRAME = {"name": "f", "filename": "a.py", "line": 1}


def test_stacks_of_dicts_and_runs() -> None:
    column = StackColumn("frames", 6, StackTable())
    column.put(slice(0, 2), [[FRAME], []], str)
    column.put(slice(2, 5), Coded(np.array([1, 0, 1], np.int32), [[FRAME, FRAME], [FRAME]]), str)
    assert column.built().tolist() == [0, -1, 0, 1, 0, -1]


def test_other_values_are_refused() -> None:
    column = StackColumn("frames", 6, StackTable())
    wrong: list[Any] | Coded
    for wrong in ([{}], Coded(np.array([0], np.int32), [None])):
        with pytest.raises(SnapshotError, match=r"3.frames: expected a list of frames, got"):
            column.put(slice(3, 4), wrong, str)
