from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support.bad_snapshots import entry, segment, snapshot
from vramscope_analysis.snapshot import Snapshot


@pytest.mark.parametrize("table", ["segments", "blocks", "trace"])
def test_all_columns_have_one_row_each(table: str) -> None:
    snap = Snapshot.from_plain(snapshot(segments=[segment()] * 3, device_traces=[[entry()] * 3]))
    found = snap.traces[0] if table == "trace" else getattr(snap, table)
    columns = {
        field.name: getattr(found, field.name)
        for field in dataclasses.fields(found)
        if field.name not in ("layout", "texts", "block_offsets")
    }
    assert len(found) == 3
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(columns, 3)
    assert all(isinstance(column, np.ndarray) for column in columns.values())
