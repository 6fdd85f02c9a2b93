from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.snapshot import Action, Limits, SnapshotError
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.trace_table import trace_table

FULL: dict[str, Any] = {
    "action": "segment_map",
    "addr": 2**64 - 1,
    "size": 2**62,
    "stream": 5,
    "time_us": 1_795_983_564_981_436,
    "pool_id": (1, 0),
    "compile_context": "N/A",
    "user_metadata": "step 1",
    "frames": [{"name": "f", "filename": "a.py", "line": 1}],
}
OOM = {"action": "oom", "device_free": 7, "size": 1}


def test_every_key_has_its_column() -> None:
    trace = trace_table(Building(Limits()), [FULL, OOM], "t")

    assert len(trace) == 2
    assert trace.action.tolist() == [Action.SEGMENT_MAP, Action.OOM]
    assert trace.address.tolist() == [2**64 - 1, 7]
    assert trace.size.tolist() == [2**62, 1]
    assert trace.stream.tolist() == [5, 0]
    assert trace.time_us.tolist() == [1_795_983_564_981_436, 0]
    assert trace.pool_id.tolist() == [[1, 0], [-1, -1]]
    assert trace.stack.tolist() == [0, -1]
    assert trace.texts == ["N/A", "step 1"]
    assert trace.compile_context.tolist() == [0, -1]
    assert trace.user_metadata.tolist() == [1, -1]
    assert trace.has_pool_ids
    assert trace.keys == {*FULL, "device_free"}
    assert not trace_table(Building(Limits()), [OOM], "t").has_pool_ids


@pytest.mark.parametrize("missing", ["action", "size", "addr"])
def test_an_entry_needs_the_least(missing: str) -> None:
    entry = {key: value for key, value in FULL.items() if key != missing}
    with pytest.raises(SnapshotError, match=rf"t\[1\]: expected the key '{missing}"):
        trace_table(Building(Limits()), [FULL, entry], "t")


def test_no_entries() -> None:
    trace = trace_table(Building(Limits()), [], "t")
    assert len(trace) == 0
    assert trace.keys == set()
