"""Segments and their blocks as tables."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.action import BlockState
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.columns import (
    Column,
    FlagColumn,
    IntegerColumn,
    ListColumn,
    PairColumn,
)
from vramscope_analysis.snapshot.tables.extra_column import WordColumn
from vramscope_analysis.snapshot.tables.stack_column import StackColumn
from vramscope_analysis.snapshot.tables.table_rows import TableRows
from vramscope_analysis.snapshot.tables.tables import Blocks, Segments


class SegmentType(IntEnum):
    """The ``segment_type`` of a segment (``SegmentInfo::is_large``)."""

    LARGE = 0
    SMALL = 1
    OTHER = 255


_SIZES = ("total_size", "allocated_size", "active_size", "requested_size")


def segment_tables(building: Building, plain: Any) -> tuple[Segments, Blocks]:
    """The tables of a list of segments; SnapshotError for what PyTorch cannot have written."""
    rows = building.rows(plain, "segments")
    n = len(rows)
    address = IntegerColumn("address", n, np.uint64)
    device = IntegerColumn("device", n, np.int32, least=0)
    stream = IntegerColumn("stream", n, np.int64)
    sizes = {key: IntegerColumn(key, n, np.int64, least=0) for key in _SIZES}
    kind = WordColumn("segment_type", n, SegmentType, building.values)
    pool_id = PairColumn("segment_pool_id", n)
    is_expandable = FlagColumn("is_expandable", n)
    stack = StackColumn("frames", n, building.stacks)
    block_lists = ListColumn("blocks", n)
    columns: list[Column] = [
        address, device, stream, *sizes.values(), kind, pool_id, is_expandable, stack, block_lists,
    ]  # fmt: skip
    layout = building.fill(
        rows, {column.key: column for column in columns}, ("address", "total_size", "blocks")
    )
    offsets, blocks = _blocks(building, block_lists.lists, address.built())
    segments = Segments(
        device=device.built(),
        address=address.built(),
        total_size=sizes["total_size"].built(),
        allocated_size=sizes["allocated_size"].built(),
        active_size=sizes["active_size"].built(),
        requested_size=sizes["requested_size"].built(),
        stream=stream.built(),
        is_small=kind.built() == SegmentType.SMALL,
        pool_id=pool_id.pairs(),
        is_expandable=is_expandable.built(),
        stack=stack.built(),
        block_offsets=offsets,
        layout=layout,
    )
    return segments, blocks


def _blocks(
    building: Building, lists: list[list[Any]], segment_address: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], Blocks]:
    rows = BlockRows()
    for block_list in lists:
        rows.begin_segment()
        building.extend(rows, block_list)
    rows.begin_segment()
    n = len(rows)
    address = IntegerColumn("address", n, np.uint64)
    size = IntegerColumn("size", n, np.int64, least=0)
    requested_size = IntegerColumn("requested_size", n, np.int64, least=0)
    state = WordColumn("state", n, BlockState, building.values)
    stack = StackColumn("frames", n, building.stacks)
    columns: list[Column] = [address, size, requested_size, state, stack]
    layout = building.fill(rows, {column.key: column for column in columns}, ("size", "state"))
    offsets = np.array(rows.starts, np.int64)
    segment = np.repeat(np.arange(len(lists), dtype=np.int32), np.diff(offsets))
    without = [index for index, keys in enumerate(layout.shapes) if "address" not in keys]
    addresses = address.built()
    if without:
        follows = np.flatnonzero(np.isin(layout.shape, without))
        addresses = addresses.copy()
        addresses[follows] = _following(size.built(), offsets, segment[follows], follows)
        addresses[follows] += segment_address[segment[follows]]
    blocks = Blocks(
        address=addresses,
        size=size.built(),
        requested_size=requested_size.built(),
        state=state.built(),
        stack=stack.built(),
        segment=segment,
        layout=layout,
    )
    return offsets, blocks


def _following(
    sizes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    segments: NDArray[np.int32],
    rows: NDArray[np.intp],
) -> NDArray[np.uint64]:
    """How far behind the begin of its segment each of these blocks begins."""
    starts = np.cumsum(sizes) - sizes
    return (starts[rows] - starts[offsets[segments]]).astype(np.uint64)


class BlockRows(TableRows):
    """The blocks of all segments in one table; messages name them by segment."""

    def __init__(self) -> None:
        super().__init__("segments[].blocks")
        self.starts: list[int] = []

    def begin_segment(self) -> None:
        """What is appended from now on belongs to the next segment."""
        self.starts.append(len(self))

    def where(self, row: int) -> str:
        """How messages name a block."""
        segment = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"segments[{segment}].blocks[{row - self.starts[segment]}]"
