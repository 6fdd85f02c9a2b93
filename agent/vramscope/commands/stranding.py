"""Who holds the memory that ``empty_cache`` cannot give back: what lives beside it. Pure.

Free memory is stranded by every block that lives in its segment, or in its page of an expandable
one: only when all of them have gone can it go back. So each holder has an equal share of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from vramscope.commands.cache_plan import DEFAULT_POOL, free_ranges, given_ranges
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.tensors.category import (
    BUFFERS,
    GRADIENTS,
    OPTIMIZER_STATE,
    PARAMETERS,
)

MAX_HOLDERS: Final = 8
ELSE: Final = "tensors that are no parameter, gradient, optimizer state or buffer"
_REST: Final = "others"
_MAX_FRAMES: Final = 64
_PATH_PARTS: Final = 3
"""Parts of a module's path that holders are told apart by."""

_WORDS: Final = {
    PARAMETERS: "parameters",
    GRADIENTS: "gradients",
    OPTIMIZER_STATE: "optimizer state",
    BUFFERS: "buffers",
}

OwnerOf: TypeAlias = Callable[[int], "tuple[int, str]"]
"""Category and name of what lies at an address."""
Segment: TypeAlias = "Mapping[str, Any]"


class Holder(Struct, frozen=True):
    """What keeps some memory from going back."""

    what: str
    """A line of the job where stacks are recorded, else what the tensors are."""
    bytes: int
    """Its share of the stranded memory."""
    segments: int
    """In so many segments it holds some."""


def holders(segments: Iterable[Segment], owner_of_address: OwnerOf) -> list[Holder]:
    """Who strands free memory, most first, at most eight; the rest is in the last one.

    Args:
        segments: as ``memory_snapshot`` has them, with frames where a history is recorded.
        owner_of_address: whose memory an address is; ``(0, "")`` for what it does not know.
    """
    shares: dict[str, int] = {}
    places: dict[str, int] = {}
    for segment in segments:
        if tuple(segment.get("segment_pool_id", DEFAULT_POOL)) != DEFAULT_POOL:
            continue
        seen: set[str] = set()
        for stranded_bytes, blocks in _stranded(segment):
            found = sorted({_what(address, block, owner_of_address) for address, block in blocks})
            share, rest = divmod(stranded_bytes, len(found))
            for number, what in enumerate(found):
                shares[what] = shares.get(what, 0) + share + (number < rest)
            seen.update(found)
        for what in seen:
            places[what] = places.get(what, 0) + 1
    rows = [Holder(what, share, places[what]) for what, share in shares.items() if share]
    rows.sort(key=lambda row: (-row.bytes, row.what))
    if len(rows) <= MAX_HOLDERS:
        return rows
    rest_rows = rows[MAX_HOLDERS - 1 :]
    rest_bytes = sum(row.bytes for row in rest_rows)
    most_segments = max(row.segments for row in rest_rows)
    return [*rows[: MAX_HOLDERS - 1], Holder(_REST, rest_bytes, most_segments)]


def _stranded(segment: Segment) -> Iterator[tuple[int, list[tuple[int, Mapping[str, Any]]]]]:
    """Free bytes that stay, with the live blocks that keep them: of it all, or page by page."""
    free = free_ranges(segment)
    given_bytes = sum(end - start for start, end in given_ranges(segment, free))
    stranded_bytes = sum(end - start for start, end in free) - given_bytes
    if not stranded_bytes:
        return
    starts: list[int] = []
    live: list[tuple[int, Mapping[str, Any]]] = []
    offset, base = 0, int(segment.get("address", 0))
    for block in segment["blocks"]:
        if block["state"] == "active_allocated":
            starts.append(offset)
            live.append((base + offset, block))
        offset += int(block["size"])
    if not segment.get("is_expandable"):
        yield stranded_bytes, live
        return
    page_bytes = int(segment["page_bytes"])
    for page, free_bytes in _free_in_pages(free, page_bytes).items():
        first = max(0, bisect_right(starts, page * page_bytes) - 1)
        last = bisect_right(starts, (page + 1) * page_bytes - 1)
        inside = [
            each
            for each in live[first:last]
            if each[0] - base + int(each[1]["size"]) > page * page_bytes
        ]
        if inside:  # else the page is free from end to end, and goes back
            yield free_bytes, inside


def _free_in_pages(free: Sequence[tuple[int, int]], page_bytes: int) -> dict[int, int]:
    """Free bytes of the pages in which a free range begins or ends."""
    pages: dict[int, int] = {}
    for start, end in free:
        for page in {start // page_bytes, (end - 1) // page_bytes}:
            inside = min(end, (page + 1) * page_bytes) - max(start, page * page_bytes)
            pages[page] = pages.get(page, 0) + inside
    return pages


def _what(address: int, block: Mapping[str, Any], owner_of_address: OwnerOf) -> str:
    frames: Sequence[Mapping[str, Any]] = block.get("frames") or ()
    if frames:
        return _line(frames)
    code, name = owner_of_address(address)
    if code not in _WORDS:
        return ELSE
    # "exp_avg of encoder.layers.0.weight" is of the module encoder.layers.0.
    path = ".".join(name.rpartition(" of ")[2].split(".")[:-1][:_PATH_PARTS])
    return f"{_WORDS[code]} of {path}" if path else _WORDS[code]


def _line(frames: Sequence[Mapping[str, Any]]) -> str:
    """The innermost line of the job; where there is none, the innermost of all."""
    own = (each for each in frames[:_MAX_FRAMES] if owner_of(each["filename"]) is Owner.USER)
    frame = next(own, frames[0])
    return f"{frame['filename']}:{frame['line']} {frame['name']}"
