from __future__ import annotations

from typing import Any

import pytest

from tests.support.bad_snapshots import block, segment
from vramscope_analysis.snapshot import BlockState, Limits, SnapshotError
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.segment_tables import BlockRows, segment_tables

FULL: dict[str, Any] = {
    "device": 1,
    "address": 2**47,
    "total_size": 2**21,
    "allocated_size": 512,
    "active_size": 1024,
    "requested_size": 3,
    "stream": 2**46,
    "segment_type": "small",
    "segment_pool_id": (0, 7),
    "is_expandable": True,
    "frames": [{"name": "f", "filename": "a.py", "line": 1}],
    "blocks": [block(address=2**47, state="active_pending_free")],
}


def test_every_key_has_its_column() -> None:
    segments, blocks = segment_tables(Building(Limits()), [FULL, segment(blocks=[])])

    assert len(segments) == 2
    assert segments.device.tolist() == [1, 0]
    assert segments.address.tolist() == [2**47, 4096]
    assert segments.total_size.tolist() == [2**21, 2048]
    assert segments.allocated_size.tolist() == [512, 0]
    assert segments.active_size.tolist() == [1024, 0]
    assert segments.requested_size.tolist() == [3, 0]
    assert segments.stream.tolist() == [2**46, 0]
    assert segments.is_small.tolist() == [True, False]
    assert segments.pool_id.tolist() == [[0, 7], [-1, -1]]
    assert segments.is_expandable.tolist() == [True, False]
    assert segments.stack.tolist() == [0, -1]
    assert segments.block_offsets.tolist() == [0, 1, 1]
    assert segments.block_range(0) == (0, 1)
    assert segments.keys == set(FULL)
    assert len(blocks) == 1
    assert blocks.address.tolist() == [2**47]
    assert blocks.size.tolist() == [2048]
    assert blocks.requested_size.tolist() == [1]
    assert blocks.state.tolist() == [BlockState.ACTIVE_PENDING_FREE]
    assert blocks.stack.tolist() == [-1]
    assert blocks.segment.tolist() == [0]
    assert blocks.keys == set(block())


def test_blocks_without_an_address_follow_each_other() -> None:
    without = [{"size": 512, "state": "inactive"}, {"size": 1024, "state": "inactive"}]
    plain = [segment(blocks=[*without, block(address=9)]), segment(address=2**63, blocks=without)]
    _, blocks = segment_tables(Building(Limits()), plain)

    assert blocks.address.tolist() == [4096, 4608, 9, 2**63, 2**63 + 512]
    assert blocks.segment.tolist() == [0, 0, 0, 1, 1]


def test_no_segments() -> None:
    segments, blocks = segment_tables(Building(Limits()), [])
    assert len(segments) == len(blocks) == 0
    assert segments.block_offsets.tolist() == [0]
    assert segments.pool_id.shape == (0, 2)


def test_blocks_are_named_by_their_segment() -> None:
    rows = BlockRows()
    for blocks in ([block()], [], [block(), block()]):
        rows.begin_segment()
        rows.extend(blocks)
    assert [rows.where(row) for row in range(4)] == [
        "segments[0].blocks[0]",
        "segments[2].blocks[0]",
        "segments[2].blocks[1]",
        "segments[2].blocks[2]",
    ]
    with pytest.raises(SnapshotError, match=r"segments\[1\].blocks\[1\].size: expected an integer"):
        segment_tables(Building(Limits()), [segment(), segment(blocks=[block(), block(size=None)])])
