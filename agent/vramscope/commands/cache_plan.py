"""What ``empty_cache`` would give back, computed exactly from the segments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

DEFAULT_POOL: Final = (0, 0)


class CachePlan(Struct, frozen=True):
    """Free bytes of a device by what ``empty_cache`` can do with them."""

    returnable_bytes: int = 0
    returnable_segments: int = 0
    """Segments, or mapped ranges of expandable segments, that would give something back."""
    stranded_bytes: int = 0
    """Free, but in a segment (or a page of an expandable one) that is partly in use."""
    stranded_segments: int = 0
    """Segments that are split between such memory and what is in use."""
    private_pool_bytes: int = 0
    """Free, but kept by CUDA graphs or memory pools of the job."""
    segments: int = 0


def plan_empty_cache(segments: Iterable[Mapping[str, Any]]) -> CachePlan:
    """Apply the rules of ``empty_cache`` to segments as ``memory_snapshot`` has them.

    Blocks that wait for another stream count as free: ``empty_cache`` waits for them first.
    Private pools count as kept: the segments do not tell whether their graph or pool still lives,
    for which see ``pool_users.py``.
    """
    returnable_bytes = returnable_segments = stranded_bytes = stranded_segments = 0
    private_pool_bytes = count = 0
    for segment in segments:
        count += 1
        ranges = free_ranges(segment)
        free_bytes = sum(end - start for start, end in ranges)
        if tuple(segment.get("segment_pool_id", DEFAULT_POOL)) != DEFAULT_POOL:
            private_pool_bytes += free_bytes
            continue
        given_bytes = sum(end - start for start, end in given_ranges(segment, ranges))
        returnable_bytes += given_bytes
        returnable_segments += given_bytes > 0
        stranded_bytes += free_bytes - given_bytes
        stranded_segments += free_bytes > given_bytes
    return CachePlan(
        returnable_bytes,
        returnable_segments,
        stranded_bytes,
        stranded_segments,
        private_pool_bytes,
        count,
    )


def free_ranges(segment: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Free ranges as offsets from the segment's start, neighbours merged as the allocator does."""
    ranges: list[tuple[int, int]] = []
    offset = 0
    for block in segment["blocks"]:
        end = offset + int(block["size"])
        if block["state"] != "active_allocated":
            if ranges and ranges[-1][1] == offset:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((offset, end))
        offset = end
    return ranges


def given_ranges(
    segment: Mapping[str, Any], ranges: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What goes back of a segment with these free ranges: all of it or nothing, or whole pages."""
    total_bytes = int(segment["total_size"])
    if not segment.get("is_expandable"):
        return ranges if ranges == [(0, total_bytes)] else []
    # Mapped ranges start at a page, so pages are counted from the start of the range.
    page_bytes = int(segment["page_bytes"])
    pages = ((-(-start // page_bytes), end // page_bytes) for start, end in ranges)
    return [(first * page_bytes, last * page_bytes) for first, last in pages if first < last]
