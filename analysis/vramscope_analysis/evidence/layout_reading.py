"""Free memory cut up by pool and stream: from the segments of a device and their live blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.memory_layout import PRIVATE, Pin, PoolLayout

MOST_PINS: Final = 5

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HeldSegments:
    """What the allocator holds of the device, by address; one row a segment.

    Args:
        start, size: in bytes; an expandable segment counts once for each mapped range.
        stream: handle of its stream.
        pool: ``small``, ``large`` or ``private``.
        page_bytes: of an expandable segment, else 0.
    """

    start: Integers
    size: Integers
    stream: Integers
    pool: Sequence[str]
    page_bytes: Integers

    @property
    def end(self) -> Integers:
        """Where each one ends."""
        return self.start + self.size


@dataclass(frozen=True, eq=False)
class LiveBlocks:
    """What is in use of it, by address; one row a block.

    Args:
        start, size: in bytes.
        stays: it outlives steps: neither a gradient nor of one step alone.
        name: what it is, as a person would say it; empty is not known.
    """

    start: Integers
    size: Integers
    stays: Flags
    name: Sequence[str]


def layout_of(segments: HeldSegments, blocks: LiveBlocks) -> tuple[list[PoolLayout], list[Pin]]:
    """Pools and pins of one moment.

    Args:
        segments: by address, none touching the inside of another.
        blocks: by address, each within one segment.
    """
    pieces = _Pieces.of(segments, blocks)
    between = _Pieces.of(segments, _only_lasting(blocks))
    pinned = _pinned(segments, blocks, pieces)
    groups: dict[tuple[str, int], list[int]] = {}
    for row, key in enumerate(zip(segments.pool, segments.stream.tolist(), strict=True)):
        groups.setdefault(key, []).append(row)
    pools = [
        _pool(pool, stream, np.array(rows), segments, (pieces, between), pinned)
        for (pool, stream), rows in groups.items()
    ]
    pools.sort(key=lambda each: (-each.free_bytes, -each.reserved_bytes))
    return pools, list(_pins(blocks, pieces, pinned))


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Free pieces: their segment, begin and size; and which segment each block lies in."""

    segment: NDArray[np.intp]
    start: Integers
    size: Integers
    of_block: NDArray[np.intp]
    blocks_in: NDArray[np.intp]

    @classmethod
    def of(cls, segments: HeldSegments, blocks: LiveBlocks) -> _Pieces:
        count = len(segments.start)
        first = np.searchsorted(blocks.start, segments.start)
        last = np.searchsorted(blocks.start, segments.end)
        of_block = np.repeat(np.arange(count), last - first)
        block_ends = blocks.start + blocks.size
        # Before each block: from the end of the one before it, or from the begin of the segment.
        since = np.empty(len(blocks.start), np.int64)
        since[1:] = block_ends[:-1]
        filled = np.flatnonzero(last > first)
        since[first[filled]] = segments.start[filled]
        tail = segments.start.copy()
        tail[filled] = block_ends[last[filled] - 1]
        starts = np.concatenate((since, tail))
        sizes = np.concatenate((blocks.start - since, segments.end - tail))
        where = np.concatenate((of_block, np.arange(count)))
        free = sizes > 0
        return cls(where[free], starts[free], sizes[free], of_block, last - first)

    def sum_of(self, count: int) -> Integers:
        """Free bytes of each segment."""
        return np.bincount(self.segment, self.size, count).astype(np.int64)


def _only_lasting(blocks: LiveBlocks) -> LiveBlocks:
    stays = blocks.stays
    return LiveBlocks(blocks.start[stays], blocks.size[stays], stays[stays], ())


def _pinned(segments: HeldSegments, blocks: LiveBlocks, pieces: _Pieces) -> Integers:
    """Free bytes of each segment that only blocks that stay keep; those of others count nothing."""
    count = len(segments.start)
    lasting = np.bincount(pieces.of_block, blocks.stays, count).astype(np.int64)
    is_pinned = (pieces.blocks_in > 0) & (lasting == pieces.blocks_in)
    # A page of an expandable segment goes back alone, and its rest joins what is beside it.
    is_pinned &= (segments.page_bytes == 0) & (np.array(segments.pool) != PRIVATE)
    return np.where(is_pinned, pieces.sum_of(count), 0)


def _pool(
    pool: str,
    stream: int,
    rows: NDArray[np.intp],
    segments: HeldSegments,
    cut: tuple[_Pieces, _Pieces],
    pinned: Integers,
) -> PoolLayout:
    pieces, between = cut
    mine = np.isin(pieces.segment, rows)
    sizes = pieces.size[mine]
    lasting = between.size[np.isin(between.segment, rows)]
    return PoolLayout(
        pool=pool,
        stream=stream,
        reserved_bytes=int(segments.size[rows].sum()),
        free_bytes=int(sizes.sum()),
        pieces=len(sizes),
        largest_bytes=int(sizes.max(initial=0)),
        between_bytes=int(lasting.max(initial=0)),
        returnable_bytes=0 if pool == PRIVATE else _returnable(segments, pieces, mine),
        pinned_bytes=int(pinned[rows].sum()),
        is_expandable=bool((segments.page_bytes[rows] > 0).any()),
    )


def _returnable(segments: HeldSegments, pieces: _Pieces, mine: Flags) -> int:
    """Whole segments, and whole pages of expandable ones."""
    where, size = pieces.segment[mine], pieces.size[mine]
    page = np.maximum(segments.page_bytes[where], 1)
    begin = pieces.start[mine] - segments.start[where]
    pages = np.maximum((begin + size) // page - -(-begin // page), 0) * page
    whole = np.where(size == segments.size[where], size, 0)
    return int(np.where(segments.page_bytes[where] > 0, pages, whole).sum())


def _pins(blocks: LiveBlocks, pieces: _Pieces, pinned: Integers) -> Iterable[Pin]:
    """Who keeps what: a segment counts for the name that has most of its live bytes."""
    of: dict[str, list[int]] = {}
    held: list[int] = np.flatnonzero(pinned).tolist()
    for segment in held:
        first = int(np.searchsorted(pieces.of_block, segment))
        last = first + int(pieces.blocks_in[segment])
        sizes: dict[str, int] = {}
        for row in range(first, last):
            sizes[blocks.name[row]] = sizes.get(blocks.name[row], 0) + int(blocks.size[row])
        name = max(sizes, key=lambda each: (each != "", sizes[each]))
        so_far = of.setdefault(name, [0, 0, 0])
        so_far[0] += last - first
        so_far[1] += int(blocks.size[first:last].sum())
        so_far[2] += int(pinned[segment])
    ranked = sorted(of.items(), key=lambda each: -each[1][2])
    return (Pin(name, *numbers) for name, numbers in ranked[:MOST_PINS])
