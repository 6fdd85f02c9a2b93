"""A memory map as the judges read it: free memory by pool and stream, and what pins segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.layout_reading import HeldSegments, LiveBlocks, layout_of
from vramscope_analysis.evidence.memory_layout import PRIVATE, MemoryLayout
from vramscope_protocol.map_columns import (
    ALLOCATED,
    BLOCK_COLUMNS,
    EXPANDABLE,
    FREE,
    LARGE,
    SEGMENT_COLUMNS,
    SUMMARISED,
)
from vramscope_protocol.map_columns import PRIVATE as PRIVATE_FLAG
from vramscope_server.maps.current_map import MapParts

STAYS_STEPS: Final = 20
"""A block that has been there for so many steps stays, whatever it is."""
STAYS_MS: Final = 10_000
"""The same of one that was there at the first look, whose step nobody knows."""
_LASTING: Final = (1, 3, 4)
"""Categories of the map that stay: parameters, state of optimizers, buffers."""
_GRADIENTS: Final = 2

Table = dict[str, NDArray[Any]]


def map_layout(parts: MapParts) -> MemoryLayout:
    """The layout of a map. Takes some milliseconds for many blocks.

    Args:
        parts: of one frame.
    """
    # Sorted here and not where they are kept: that is on the event loop.
    parts = replace(parts, segments=sorted(parts.segments, key=lambda each: each[0][0]))
    segments, blocks = _segments(parts), _blocks(parts)
    held = _held(segments)
    of_segment = np.repeat(np.arange(len(held.start)), segments["blocks"])
    starts = _starts(held, of_segment, blocks["size"])
    live = np.flatnonzero(blocks["state"] != FREE)
    names = _Names(parts, blocks)
    pools, pins = layout_of(
        held,
        LiveBlocks(
            starts[live],
            blocks["size"][live],
            _stays(parts, blocks)[live],
            [names(row) for row in live.tolist()],
        ),
    )
    head = parts.head
    merged = segments["flags"] & (LARGE | SUMMARISED) == LARGE | SUMMARISED
    return MemoryLayout(
        tuple(pools),
        tuple(pins),
        head["time_ns"],
        head["step"],
        head["is_step_end"],
        head["limit_bytes"],
        head["device_free_bytes"],
        is_exact=not bool(merged.any()),
    )


def _segments(parts: MapParts) -> Table:
    rows = [row for row, _ in parts.segments]
    return {
        name: np.array([row[position] for row in rows], np.int64)
        for position, name in enumerate(SEGMENT_COLUMNS)
    }


def _blocks(parts: MapParts) -> Table:
    tables = [table for _, table in parts.segments]
    return {
        name: np.concatenate([table[name] for table in tables]).astype(np.int64)
        if tables
        else np.zeros(0, np.int64)
        for name in BLOCK_COLUMNS
    }


def _held(segments: Table) -> HeldSegments:
    flags: list[int] = segments["flags"].tolist()
    is_expandable = segments["flags"] & EXPANDABLE > 0
    return HeldSegments(
        segments["address"],
        segments["size"],
        segments["stream"],
        [_pool(each) for each in flags],
        # An expandable one whose page nobody told: that none is whole is the least that is true.
        np.where(is_expandable & (segments["page_bytes"] == 0), 1 << 62, segments["page_bytes"]),
    )


def _pool(flags: int) -> str:
    if flags & PRIVATE_FLAG:
        return PRIVATE
    return "large" if flags & LARGE else "small"


def _starts(
    held: HeldSegments, of_segment: NDArray[np.intp], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where each block begins: after those before it in its segment."""
    before = np.cumsum(sizes) - sizes
    first = np.searchsorted(of_segment, np.arange(len(held.start)))
    # A segment without rows has no first one; nothing asks for it.
    base = before[np.minimum(first, max(len(before) - 1, 0))] if len(before) else first
    starts: NDArray[np.int64] = before - base[of_segment] + held.start[of_segment]
    return starts


def _stays(parts: MapParts, blocks: Table) -> NDArray[np.bool_]:
    """Which blocks are there for good; of several in one row nobody knows."""
    step, head = parts.head["step"], parts.head
    category, first_step = blocks["category"], blocks["first_step"]
    watched_ms = (head["time_ns"] - head["since_ns"]) // 1_000_000
    unseen = (first_step < 0) & (watched_ms >= STAYS_MS)
    old = (first_step >= 0) & ((-1 if step is None else step) - first_step >= STAYS_STEPS)
    lasting = np.isin(category, _LASTING) | ((category != _GRADIENTS) & (unseen | old))
    stays: NDArray[np.bool_] = lasting & (blocks["state"] == ALLOCATED) & (blocks["count"] == 1)
    return stays


class _Names:
    """What a block is called: its tensor, or the line that allocated it."""

    def __init__(self, parts: MapParts, blocks: Table) -> None:
        self._texts = parts.texts
        self._owner, self._stack = blocks["owner"], blocks["stack"]

    def __call__(self, row: int) -> str:
        owner, stack = int(self._owner[row]), int(self._stack[row])
        if owner >= 0 and self._texts[owner]:
            return self._texts[owner]
        return _line(self._texts[stack]) if stack >= 0 else ""


def _line(stack: str) -> str:
    """The innermost line of a stack that is not of PyTorch: ``train.py:56 forward``."""
    for frame in stack.split("\n"):
        path = frame.partition(":")[0].replace("\\", "/")
        if path and "/torch/" not in path:
            return frame.replace("\\", "/").rpartition("/")[2]
    return ""
