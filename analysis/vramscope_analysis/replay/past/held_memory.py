"""What the allocator held from the device at one moment of a recording."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.replay.recording import Events


@dataclass(frozen=True, slots=True)
class HeldSegment:
    """A segment, or pages that lie mapped one after the other in an expandable one.

    Args:
        address: where it starts.
        size_bytes: how long it is.
        stream: whose blocks it serves.
        pool_id: its private pool; None: no entry and no segment says it.
        is_small: whether it belongs to the small pool; None: not said.
        is_expandable: whether it is made of pages.
        freed_at: entry that gave it, or the last of it, back; None: held at the end, so that a
            segment there describes it.
    """

    address: int
    size_bytes: int
    stream: int
    pool_id: PoolId | None
    is_small: bool | None
    is_expandable: bool
    freed_at: int | None

    @property
    def end(self) -> int:
        """First address behind it."""
        return self.address + self.size_bytes

    def part(self, start: int, end: int) -> HeldSegment:
        """The piece of it between two addresses."""
        return replace(self, address=start, size_bytes=end - start)


class MappedPages:
    """Pages of expandable segments that are mapped, as ranges by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[HeldSegment] = []

    def __iter__(self) -> Iterator[HeldSegment]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def at(self, address: int) -> HeldSegment | None:
        """The range that an address lies in."""
        position = bisect_right(self._starts, address) - 1
        if position < 0 or self._ranges[position].end <= address:
            return None
        return self._ranges[position]

    def add(self, pages: HeldSegment) -> bool:
        """Map pages. False: some of them were mapped already; those stay as they were."""
        free = list(self._unmapped_within(pages.address, pages.end))
        for start, end in free:
            position = bisect_left(self._starts, start)
            self._starts.insert(position, start)
            self._ranges.insert(position, pages.part(start, end))
        return free == [(pages.address, pages.end)]

    def remove(self, start: int, end: int) -> bool:
        """Unmap the pages between two addresses. False: some of them were not mapped."""
        first, last = self._overlapping(start, end)
        removed_bytes = 0
        kept: list[HeldSegment] = []
        for pages in self._ranges[first:last]:
            if pages.address < start:
                kept.append(pages.part(pages.address, start))
            if pages.end > end:
                kept.append(pages.part(end, pages.end))
            removed_bytes += min(pages.end, end) - max(pages.address, start)
        self._ranges[first:last] = kept
        self._starts[first:last] = [pages.address for pages in kept]
        return removed_bytes == end - start

    def _overlapping(self, start: int, end: int) -> tuple[int, int]:
        """Positions of the ranges that share a byte with one from ``start`` to ``end``."""
        first = bisect_right(self._starts, start)
        if first and self._ranges[first - 1].end > start:
            first -= 1
        return first, bisect_left(self._starts, end)

    def _unmapped_within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        first, last = self._overlapping(start, end)
        for pages in self._ranges[first:last]:
            if pages.address > start:
                yield start, pages.address
            start = max(start, pages.end)
        if start < end:
            yield start, end


def pool_of(events: Events, entry: int) -> PoolId | None:
    """Private pool that an entry names; None: it names none (up to torch 2.11)."""
    if events.pool_ids is None or events.pool_ids[entry, 0] < 0:
        return None
    return int(events.pool_ids[entry, 0]), int(events.pool_ids[entry, 1])


def without_overlaps(held: Iterable[HeldSegment]) -> tuple[list[HeldSegment], int]:
    """Of two that overlap, the one that entries know; which of the end came after the last entry.

    Args:
        held: by address.

    Returns:
        What is left, by address, and how many are not.
    """
    kept: list[HeldSegment] = []
    dropped = 0
    for segment in held:
        while kept and kept[-1].end > segment.address and kept[-1].freed_at is None:
            kept.pop()
            dropped += 1
        if kept and kept[-1].end > segment.address:
            dropped += 1
        else:
            kept.append(segment)
    return kept, dropped


def joined(held: Iterable[HeldSegment]) -> list[HeldSegment]:
    """Memory as a snapshot shows it: pages that lie mapped without a gap are one segment.

    Pages of different streams or pools that happen to touch stay apart.

    Args:
        held: by address.
    """
    result: list[HeldSegment] = []
    for pages in held:
        before = result[-1] if result else None
        if before is None or before.end != pages.address or not _may_join(before, pages):
            result.append(pages)
            continue
        result[-1] = replace(
            before,
            size_bytes=before.size_bytes + pages.size_bytes,
            pool_id=before.pool_id if before.pool_id is not None else pages.pool_id,
            is_small=before.is_small if before.is_small is not None else pages.is_small,
            freed_at=_later(before.freed_at, pages.freed_at),
        )
    return result


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _may_join(one: HeldSegment, other: HeldSegment) -> bool:
    return (
        one.is_expandable
        and other.is_expandable
        and one.stream == other.stream
        and (one.pool_id is None or other.pool_id is None or one.pool_id == other.pool_id)
        and (one.is_small is None or other.is_small is None or one.is_small == other.is_small)
    )
