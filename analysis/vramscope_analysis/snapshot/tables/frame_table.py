"""Frames as a table."""

from __future__ import annotations

import numpy as np

from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.columns import Column, IntegerColumn, TextColumn
from vramscope_analysis.snapshot.tables.stacks import Frames


def frame_table(building: Building) -> Frames:
    """The table of all frames that the stacks so far are made of."""
    rows = building.rows(building.stacks.frame_rows, "frames")
    texts: dict[str, int] = {}
    filename = TextColumn("filename", len(rows), texts)
    name = TextColumn("name", len(rows), texts)
    line = IntegerColumn("line", len(rows), np.int64)
    columns: list[Column] = [filename, name, line]
    layout = building.fill(
        rows, {column.key: column for column in columns}, ("filename", "name", "line")
    )
    return Frames(filename.built(), name.built(), line.built(), list(texts), layout)
