from __future__ import annotations

import numpy as np
import pytest

from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.frame_table import frame_table


def test_frames_become_columns() -> None:
    building = Building(Limits())
    frames = [
        {"name": "f", "filename": "a.py", "line": 1},
        {"filename": "a.py", "line": -1, "name": "a.py", "fx_original_trace": "x"},
    ]
    building.stacks.index(frames, "frames")
    table = frame_table(building)

    assert [table[0], table[1]] == [("a.py", 1, "f"), ("a.py", -1, "a.py")]
    assert sorted(table.texts) == ["a.py", "f"]
    assert table.layout.extras["fx_original_trace"].of(np.array([1])) == ["x"]


@pytest.mark.parametrize(("key", "value"), [("name", None), ("filename", 5), ("line", "7")])
def test_frames_are_checked(key: str, value: object) -> None:
    building = Building(Limits())
    frame: dict[str, object] = {"name": "f", "filename": "a.py", "line": 1, key: value}
    building.stacks.index([frame], "frames")
    with pytest.raises(SnapshotError, match=rf"frames\[0\].{key}: expected"):
        frame_table(building)
