from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.runs.run import Coded, Run, RunBlock, RunPart
from vramscope_analysis.snapshot.tables.columns import rows_of
from vramscope_analysis.snapshot.tables.table_rows import DictRows, RunRows, TableRows


def run_block() -> RunBlock:
    """Rows 0, 1, 3 have the key a, row 2 has b."""
    return RunBlock(
        [
            RunPart(("a",), 3, np.array([0, 1, 3], np.int32), {"a": Coded(np.array([0, 1, 3]))}),
            RunPart(("b",), 1, np.array([2], np.int32), {"b": Coded(np.array([2]))}),
        ]
    )


def table(rows: TableRows) -> list[dict[str, Any]]:
    """The rows as dicts again."""
    made: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    for keys, pieces in rows.shapes().items():
        for piece in pieces:
            for key in keys:
                values = piece.values(key)
                plain = values if isinstance(values, list) else values.plain()
                for row, value in zip(rows_of(piece.positions).tolist(), plain, strict=True):
                    made[row][key] = value
    return made


def test_dicts_and_runs_keep_their_order() -> None:
    block = run_block()
    rows = TableRows("rows")
    rows.extend([{"a": -1}, Run(block, 0, 2), {"b": -2}])
    rows.extend([Run(block, 2, 2), {"c": -3}])

    assert len(rows) == 7
    assert table(rows) == [
        {"a": -1}, {"a": 0}, {"a": 1}, {"b": -2}, {"b": 2}, {"a": 3}, {"c": -3},
    ]  # fmt: skip


def test_runs_that_follow_each_other_become_one_piece() -> None:
    part = RunPart(("a",), 9, None, {"a": Coded(np.arange(9))})
    block = RunBlock([part])
    rows = TableRows("rows")
    rows.extend([Run(block, 0, 3), Run(block, 3, 3)])
    rows.extend([Run(block, 6, 3)])
    (pieces,) = rows.shapes().values()

    assert len(pieces) == 1
    assert table(rows) == [{"a": at} for at in range(9)]
    rows.extend([{"z": 1}, Run(block, 0, 1)])
    assert len(rows.shapes()["a",]) == 2


def test_values_are_released_with_their_rows() -> None:
    block = run_block()
    rows = TableRows("rows")
    rows.extend([Run(block, 0, 4)])
    for keys, pieces in rows.shapes().items():
        for piece in pieces:
            assert isinstance(piece, RunRows)
            piece.release(keys[0])
    assert [part.columns for part in block.parts] == [{}, {}]
    DictRows([{"a": 1}], [0]).release("a")


def test_other_rows_are_refused() -> None:
    rows = TableRows("rows")
    rows.extend([{}])
    with pytest.raises(SnapshotError, match=r"rows\[1\]: expected a dict, got 'x'"):
        rows.extend(["x"])
