from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.tables.stack_table import StackTable


def frame(line: int, **more: Any) -> dict[str, Any]:
    return {"name": "f", "filename": "a.py", "line": line, **more}


def test_equal_stacks_have_one_index() -> None:
    table = StackTable()
    shared = frame(1)
    found = [
        table.index([shared, frame(2)], "frames"),
        table.index([frame(1), frame(2)], "frames"),
        table.index([frame(2), shared], "frames"),
        table.index([], "frames"),
    ]
    assert found == [0, 0, 1, -1]
    assert table.frame_rows == [frame(1), frame(2)]
    stacks = table.stacks()
    assert [stacks[0], stacks[1]] == [(0, 1), (1, 0)]


def test_frames_differ_in_keys_their_order_and_values() -> None:
    table = StackTable()
    turned = {"line": 1, "name": "f", "filename": "a.py"}
    frames = [frame(1), turned, frame(1, fx=None), frame(1, fx=[1]), frame(2**70), frame(1, fx=1)]
    indices = [table.index([one], "frames") for one in frames]
    assert indices == list(range(6))
    # What cannot be compared quickly is kept as often as it is there.
    assert table.index([frame(1, fx=[1])], "frames") == 6
    assert table.index([dict(turned)], "frames") == 1


def test_true_is_not_one() -> None:
    table = StackTable()
    assert table.index([frame(1)], "frames") != table.index([frame(True)], "frames")


def test_other_frames_are_refused() -> None:
    with pytest.raises(SnapshotError, match="frames: expected a dict for each frame, got 5"):
        StackTable().index([5], "frames")
