from __future__ import annotations

import numpy as np

from vramscope_analysis.snapshot.runs.run import (
    Coded,
    Run,
    RunBlock,
    RunPart,
    count_rows,
    expand,
    values_of_runs,
)

WORDS = ["x", None, ("y", 1)]


def block() -> RunBlock:
    """Rows 0, 2 and 3 have the keys a and b, rows 1 and 4 only a."""
    both = {"a": Coded(np.array([0, 2, 3])), "b": Coded(np.array([0, 1, 2], np.int32), WORDS)}
    return RunBlock(
        [
            RunPart(("a", "b"), 3, np.array([0, 2, 3], np.int32), both),
            RunPart(("a",), 2, np.array([1, 4], np.int32), {"a": Coded(np.array([1, 4]))}),
        ]
    )


ROWS = [{"a": 0, "b": "x"}, {"a": 1}, {"a": 2, "b": None}, {"a": 3, "b": ("y", 1)}, {"a": 4}]


def test_dicts_come_in_the_order_of_the_rows() -> None:
    for start in range(5):
        for end in range(start + 1, 6):
            assert Run(block(), start, end - start).dicts() == ROWS[start:end]


def test_a_part_that_is_the_whole_block() -> None:
    part = RunPart(("a",), 3, None, {"a": Coded(np.array([7, 8, 9]))})
    assert part.span(1, 3) == slice(1, 3)
    assert part.places(slice(1, 3)).tolist() == [1, 2]
    assert Run(RunBlock([part]), 1, 2).dicts() == [{"a": 8}, {"a": 9}]


def test_values_are_forgotten_when_all_were_released() -> None:
    part = block().parts[0]
    part.release("b", slice(0, 2))
    assert "b" in part.columns
    part.release("b", slice(2, 3))
    assert list(part.columns) == ["a"]
    part.release("b", slice(0, 3))


def test_runs_in_lists() -> None:
    items = [1, Run(block(), 1, 2), Run(block(), 0, 1), "z"]
    assert count_rows(items) == 5
    assert values_of_runs(items) == 9
    expand(items)
    assert items == [1, *ROWS[1:3], ROWS[0], "z"]
    assert values_of_runs(items) == 0
    expand(items)
    assert len(items) == 5
