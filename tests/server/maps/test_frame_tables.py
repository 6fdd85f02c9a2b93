"""What an agent may not say of its map."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.support.made_segments import segment
from tests.support.recorded_map import MapOfLooks, recorded_segments
from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.map_columns import (
    BLOCK_COLUMNS,
    SEGMENT_COLUMNS,
    pack_columns,
    unpack_columns,
)
from vramscope_protocol.messages import MapFrame
from vramscope_server.maps.frame_tables import MAX_BLOCKS, MAX_SEGMENTS, FrameTables

HERE = 0x7F0000000000


def good() -> MapFrame:
    return MapOfLooks().frame([segment(HERE, "a1 f2"), segment(HERE + (1 << 30), "p3")])


def with_column(frame: MapFrame, name: str, values: list[int]) -> MapFrame:
    """The same frame with other values in one column."""
    if name in SEGMENT_COLUMNS and len(values) == frame.segment_count:
        columns: dict[str, Any] = dict(
            unpack_columns(SEGMENT_COLUMNS, frame.segments, frame.segment_count)
        )
        packed = pack_columns(SEGMENT_COLUMNS, {**columns, name: values})
        return structs.replace(frame, segments=packed)
    columns = dict(unpack_columns(BLOCK_COLUMNS, frame.blocks, frame.block_count))
    return structs.replace(frame, blocks=pack_columns(BLOCK_COLUMNS, {**columns, name: values}))


@pytest.mark.parametrize("name", ["oom__default", "pools__expandable", "cuda_graphs__combined"])
def test_frames_of_recorded_jobs_are_good(name: str) -> None:
    segments = recorded_segments(name)
    tables = FrameTables(MapOfLooks().frame(segments))
    assert sorted(tables.segments["address"].tolist()) == [each["address"] for each in segments]
    assert tables.blocks["size"].sum() == sum(each["total_size"] for each in segments)


def test_an_empty_frame_is_good() -> None:
    assert len(FrameTables(MapFrame(1)).ends) == 0


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("address", [HERE, HERE], "each segment of a map once"),
        ("address", [HERE, -1], "an? address from 0 up"),
        ("address", [HERE, 1 << 62], "an? address from 0 up"),
        ("size", [3 << 20, 0], "a size from 1 up"),
        ("size", [3 << 20, 4 << 20], "fill their segment exactly"),
        ("blocks", [1, 2], "fill their segment exactly"),
        ("blocks", [3, 1], "expected the 4 blocks of the segments, got 3"),
        ("blocks", [4, -1], "no negative number of blocks"),
        ("page_bytes", [0, -1], "no negative number of blocks"),
        ("size", [1 << 20, 2 << 20, 0], "blocks with a size"),
        ("size", [1 << 20, 2 << 20, (3 << 20) - 1], "fill their segment exactly"),
        ("requested", [0, 0, -1], "blocks with a size"),
        ("state", [1, 0, 3], "a known state"),
        ("count", [1, 0, 1], "a known state"),
        ("owner", [0, -1, -1], "expected a owner among 0 texts"),
        ("owner", [-1, -1, -2], "expected a owner among 0 texts"),
        ("stack", [-1, 5, -1], "expected a stack among 0 texts"),
        ("first_step", [-1, -2, -1], "first seen at -1 or later"),
        ("first_ms", [-1, -1, -2], "first seen at -1 or later"),
    ],
)
def test_tables_that_cannot_be(name: str, values: list[int], says: str) -> None:
    with pytest.raises(ProtocolError, match=says) as error:
        FrameTables(with_column(good(), name, values))
    assert error.value.code == BAD_MESSAGE


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"base": 1}, "expected a base below 1, got 1"),
        ({"segment_count": MAX_SEGMENTS + 1}, "at most 32768 segments"),
        ({"block_count": MAX_BLOCKS + 1}, "at most 32768 segments and 65536 blocks"),
        ({"block_count": 4}, "expected 168 bytes for 4 rows"),
        ({"segments": b""}, "expected 106 bytes for 2 rows"),
        ({"rate_hz": float("nan")}, "expected a rate in Hz"),
        ({"rate_hz": -1.0}, "expected a rate in Hz"),
        ({"why_not": "x" * 513}, "at most 512 characters"),
        ({"summary": "x" * 513}, "at most 512 characters"),
        ({"first_text": 1 << 13, "texts": ["x"]}, "at most 8192 texts"),
        ({"texts": ["x" * 5000]}, "texts of at most 4096 characters"),
    ],
)
def test_heads_that_cannot_be(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        FrameTables(structs.replace(good(), **changes))


def test_sums_do_not_overflow() -> None:
    huge = with_column(good(), "size", [(1 << 62) - 1] * 3)
    with pytest.raises(ProtocolError, match="fill their segment exactly"):
        FrameTables(huge)
