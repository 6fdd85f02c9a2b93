"""What was free in the segments at a moment of a recording: between its live blocks.

The segments of the moment are those of the snapshot with every later segment event undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from vramscope_analysis.allocator.rounding import SMALL_SEGMENT_BYTES
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.snapshot import Action

_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_EVENTS: Final = (*_TAKEN, Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_MAPPED: Final = (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)


@dataclass(frozen=True)
class HeldRange:
    """A segment, or a mapped range of an expandable one.

    Args:
        start, end: addresses.
        stream: handle of its stream.
        pool: ``small``, ``large`` or ``private``.
        is_expandable: it may touch its neighbour.
    """

    start: int
    end: int
    stream: int
    pool: str
    is_expandable: bool


def ranges_at(memory: RecordedMemory, moment: int) -> list[HeldRange]:
    """What the allocator held from the device after an entry, by address."""
    held = _at_the_end(memory)
    trace = memory.trace
    if trace is not None:
        later = np.flatnonzero(np.isin(trace.action, _EVENTS))
        for entry in later[later > moment][::-1].tolist():
            action, start = Action(int(trace.action[entry])), int(trace.address[entry])
            end, stream = start + int(trace.size[entry]), int(trace.stream[entry])
            if action in _TAKEN:
                held = _without(held, start, end)
            else:
                pool = "small" if end - start == SMALL_SEGMENT_BYTES else "large"
                if trace.has_pool_ids and trace.pool_id[entry].any():
                    pool = "private"
                held.append(HeldRange(start, end, stream, pool, action in _MAPPED))
    return _joined(sorted(held, key=lambda piece: piece.start))


def free_pieces(memory: RecordedMemory, moment: int) -> list[dict[str, Any]]:
    """Free memory after an entry by pool and stream, as in a report of running out of memory."""
    live = memory.lifetimes.live_at(moment)
    starts = memory.lifetimes.address[live].astype(np.int64)
    order = np.argsort(starts)
    starts = starts[order]
    ends = starts + memory.lifetimes.size[live][order]
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for held in ranges_at(memory, moment):
        first, last = np.searchsorted(starts, (held.start, held.end))
        edges = [
            (held.start, held.start),
            *zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True),
            (held.end, held.end),
        ]
        pieces = [b[0] - a[1] for a, b in pairwise(edges) if b[0] > a[1]]
        row = rows.setdefault(
            (held.pool, held.stream),
            {
                "pool": held.pool,
                "stream": held.stream,
                "bytes": 0,
                "count": 0,
                "largest_bytes": 0,
                "returnable_bytes": 0,
                "largest_segment_bytes": 0,
            },
        )
        row["bytes"] += sum(pieces)
        row["count"] += len(pieces)
        row["largest_bytes"] = max([row["largest_bytes"], *pieces])
        if first == last and not held.is_expandable:
            row["returnable_bytes"] += held.end - held.start
        elif pieces and not held.is_expandable:
            size = held.end - held.start
            row["largest_segment_bytes"] = max(row["largest_segment_bytes"], size)
    return sorted(rows.values(), key=lambda row: -int(row["bytes"]))


def _at_the_end(memory: RecordedMemory) -> list[HeldRange]:
    segments = memory.snapshot.segments
    held: list[HeldRange] = []
    for row in np.flatnonzero(segments.device == memory.device).tolist():
        told = memory.snapshot.segment(row, frames=False)
        start = int(told["address"])
        pool = "small" if told.get("segment_type") == "small" else "large"
        if any(told.get("segment_pool_id") or ()):
            pool = "private"
        held.append(
            HeldRange(
                start,
                start + int(told["total_size"]),
                int(told["stream"]),
                pool,
                bool(told.get("is_expandable")),
            )
        )
    return held


def _without(held: Iterable[HeldRange], start: int, end: int) -> list[HeldRange]:
    left: list[HeldRange] = []
    for piece in held:
        if piece.end <= start or end <= piece.start:
            left.append(piece)
            continue
        if piece.start < start:
            left.append(replace(piece, end=start))
        if end < piece.end:
            left.append(replace(piece, start=end))
    return left


def _joined(held: list[HeldRange]) -> list[HeldRange]:
    """Mapped ranges that touch are one: a block may lie across."""
    joined: list[HeldRange] = []
    for piece in held:
        last = joined[-1] if joined else None
        if (
            last is not None
            and piece.is_expandable
            and replace(piece, start=last.start) == replace(last, end=piece.end)
            and last.end == piece.start
        ):
            joined[-1] = replace(last, end=piece.end)
        else:
            joined.append(piece)
    return joined
