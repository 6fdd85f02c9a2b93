from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.allocator import CachingAllocator
from vramscope_analysis.allocator.segment_entry import BlockEntry, read_segments

MIB = 1 << 20


def segment(**changes: Any) -> dict[str, Any]:
    blocks = [
        {"address": 4096, "size": 512, "requested_size": 100, "state": "active_allocated"},
        {"address": 4608, "size": 1536, "requested_size": 0, "state": "inactive"},
    ]
    return {
        "address": 4096,
        "total_size": 2048,
        "stream": 7,
        "segment_type": "small",
        "blocks": blocks,
        **changes,
    }


def test_what_a_model_needs_is_read() -> None:
    (entry,) = read_segments([segment(segment_pool_id=[0, 3], registration=5)])

    assert (entry.address, entry.end, entry.stream) == (4096, 6144, 7)
    assert (entry.is_small, entry.pool_id, entry.is_expandable) == (True, (0, 3), False)
    assert entry.blocks == (
        BlockEntry(512, 100, "active_allocated"),
        BlockEntry(1536, 0, "inactive"),
    )
    assert (entry.registration, entry.range_address, entry.page_bytes) == (5, None, None)


def test_segments_come_by_address() -> None:
    entries = read_segments([segment(address=9000), segment(address=100)])

    assert [entry.address for entry in entries] == [100, 9000]
    assert entries[0].pool_id == (0, 0)


def test_segments_of_the_model_are_read() -> None:
    model = CachingAllocator(None)
    model.malloc(3 * MIB, stream=4, pool_id=(2, 0))

    (entry,) = read_segments(model.segments())

    assert (entry.size_bytes, entry.stream, entry.pool_id) == (20 * MIB, 4, (2, 0))


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([segment(), segment(address=6143)], "expected segments apart"),
        ([segment(total_size=4096)], "expected blocks of 4096 bytes in the segment at 0x1000"),
        ([segment(total_size=0, blocks=[])], "expected blocks of 0 bytes"),
        ([{"address": 1, "total_size": 5}], "expected a segment with 'blocks'"),
        ([segment(blocks=[{"size": 512}])], "expected a segment with 'state'"),
        ([segment(blocks=[{"size": 0, "state": "inactive"}])], "expected a block with a size"),
        (
            [segment(blocks=[{"size": 9, "state": "gone"}])],
            "expected the state of a block, got 'go",
        ),
        (
            [segment(is_expandable=True, range_address=4097)],
            "expected a range_address up to 0x1000",
        ),
    ],
)
def test_contradictions_are_refused(segments: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_segments(segments)
