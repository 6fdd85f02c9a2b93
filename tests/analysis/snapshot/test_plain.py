from __future__ import annotations

from typing import Any

import pytest

from tests.support.bad_snapshots import block, entry, segment, snapshot
from vramscope_analysis.snapshot import Limits, Snapshot, SnapshotError
from vramscope_analysis.snapshot.plain import snapshot_of
from vramscope_analysis.snapshot.tables.building import Building


def build(plain: Any, most_rows: int | None = None) -> Snapshot:
    return snapshot_of(plain, Building(Limits(), most_rows))


def test_every_key_at_the_top_has_its_place() -> None:
    plain = snapshot(
        allocator_settings={"a": 1},
        external_annotations=[{"name": "x"}],
        host_segments=[{"address": 1, "size": 2}],
        host_traces=[entry(action="free_requested")],
        more=[1],
    )
    built = build(plain)

    assert built.keys == tuple(plain)
    assert built.host_segments == [{"address": 1, "size": 2}]
    assert built.host_trace is not None
    assert len(built.host_trace) == 1
    assert built.others == {"more": [1]}
    assert built.to_plain() == plain


def test_segments_are_enough() -> None:
    built = build({"segments": []})
    assert built.traces == ()
    assert built.to_plain() == {"segments": []}


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ([segment()], "a list of segments"),
        ([{"a": 1}], "got a list"),
        ({"segments": [], 5: 6}, "its keys are texts, got 5"),
        (snapshot(allocator_settings=None), "allocator_settings: expected a dict, got None"),
        (snapshot(host_segments={1}), "host_segments: expected plain data, got a set"),
        (snapshot(host_traces={}), "host_traces: expected a list, got a dict"),
        (snapshot(more=object()), "more: expected plain data"),
    ],
)
def test_what_is_wrong_is_named(plain: Any, words: str) -> None:
    with pytest.raises(SnapshotError, match=words):
        build(plain)


def test_rows_of_all_tables_count_together() -> None:
    plain = snapshot(segments=[segment(blocks=[block()] * 3)], device_traces=[[entry()] * 4])
    build(plain, most_rows=8)
    with pytest.raises(SnapshotError, match="would outgrow the file"):
        build(plain, most_rows=7)
