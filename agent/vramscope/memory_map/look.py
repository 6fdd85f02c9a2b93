"""One look at the segments of a device: what there is, and how long each block has been there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from msgspec import Struct

from vramscope.commands.cache_plan import CachePlan, plan_empty_cache
from vramscope_protocol.map_columns import EXPANDABLE, LARGE, PRIVATE

FREE_STATE: Final = "inactive"
DEFAULT_POOL: Final = (0, 0)

Block: TypeAlias = "tuple[int, int, str]"
"""Size, requested size, and PyTorch's word for the state."""
First: TypeAlias = "tuple[int, int]"
"""Step and milliseconds at which a block was first seen."""

UNSEEN: Final[First] = (-1, -1)
"""Of a block that was there at the first look: nobody saw it come."""

_block_of = itemgetter("size", "requested_size", "state")


class SegmentState(Struct, frozen=True, eq=False):
    """A segment as it was found. Never changed, so that threads share it; the next look has the
    same object if nothing in the segment has changed."""

    address: int
    size: int
    stream: int
    pool_id: tuple[int, int]
    page_bytes: int
    flags: int
    blocks: list[Block]
    firsts: list[First]
    stacks: list[Any] | None
    """Frames of each block as PyTorch has them; ``None`` where none has any."""
    plan: CachePlan
    largest_free_bytes: int


class Look(Struct, frozen=True, eq=False):
    """All segments at one moment, or why there are none to be seen."""

    time_ns: int
    step: int | None
    is_step_end: bool
    since_ns: int
    segments: Mapping[int, SegmentState]
    took_ns: int = 0
    why_not: str = ""

    @property
    def block_count(self) -> int:
        """Blocks of all segments."""
        return sum(len(state.blocks) for state in self.segments.values())


class Looks:
    """Makes a look of what PyTorch tells, keeping the age of what stayed. One thread.

    A block stays itself while one of the same size lies at the same address: one that was freed
    and allocated again between two looks is not told from one that stayed.
    """

    def __init__(self) -> None:
        self._last: Look | None = None

    def take(
        self,
        raw: Sequence[Mapping[str, Any]],
        *,
        time_ns: int,
        step: int | None,
        is_step_end: bool,
    ) -> Look:
        """The look that ``raw``, segments as ``memory_snapshot`` has them, is of."""
        last = self._last
        since_ns = time_ns if last is None else last.since_ns
        seen: First = UNSEEN
        if last is not None:
            seen = (-1 if step is None else step, (time_ns - since_ns) // 1_000_000)
        known: Mapping[int, SegmentState] = {} if last is None else last.segments
        elsewhere = _ExpandableBlocks(known)
        segments: dict[int, SegmentState] = {}
        for segment in raw:
            address = segment["address"]
            blocks = list(map(_block_of, segment["blocks"]))
            before = known.get(address)
            if (
                before is not None
                and before.blocks == blocks
                and before.stream == segment["stream"]
                and before.pool_id == tuple(segment.get("segment_pool_id", DEFAULT_POOL))
            ):
                segments[address] = before
                continue
            is_expandable = bool(segment.get("is_expandable"))
            if before is not None:
                firsts = _firsts(blocks, _live_blocks(before), seen)
            elif is_expandable:
                # Ranges of one expandable segment join and part as pages come and go.
                firsts = _firsts(blocks, elsewhere.shifted(address), seen)
            else:
                firsts = [seen] * len(blocks)
            segments[address] = _state(segment, blocks, firsts)
        self._last = Look(time_ns, step, is_step_end, since_ns, segments)
        return self._last


class _ExpandableBlocks:
    """Live blocks of every expandable segment of a look by address; collected when first asked."""

    def __init__(self, segments: Mapping[int, SegmentState]) -> None:
        self._segments = segments
        self._by_address: dict[int, tuple[int, int, First]] | None = None

    def shifted(self, start: int) -> Mapping[int, tuple[int, int, First]]:
        """The blocks by their offset from ``start``."""
        if self._by_address is None:
            self._by_address = {
                state.address + offset: block
                for state in self._segments.values()
                if state.flags & EXPANDABLE
                for offset, block in _live_blocks(state).items()
            }
        return {address - start: block for address, block in self._by_address.items()}


def _live_blocks(state: SegmentState) -> dict[int, tuple[int, int, First]]:
    blocks: dict[int, tuple[int, int, First]] = {}
    offset = 0
    for (size, requested, word), first in zip(state.blocks, state.firsts, strict=True):
        if word != FREE_STATE:
            blocks[offset] = (size, requested, first)
        offset += size
    return blocks


def _firsts(
    blocks: list[Block], known: Mapping[int, tuple[int, int, First]], seen: First
) -> list[First]:
    firsts: list[First] = []
    offset = 0
    for size, requested, word in blocks:
        old = known.get(offset) if word != FREE_STATE else None
        stayed = old is not None and old[0] == size and old[1] == requested
        firsts.append(old[2] if old is not None and stayed else seen)
        offset += size
    return firsts


def _state(segment: Mapping[str, Any], blocks: list[Block], firsts: list[First]) -> SegmentState:
    pool_id = tuple(segment.get("segment_pool_id", DEFAULT_POOL))
    is_private = pool_id != DEFAULT_POOL
    stacks: list[Any] | None = [
        block.get("frames") if block["state"] != FREE_STATE else None for block in segment["blocks"]
    ]
    return SegmentState(
        address=segment["address"],
        size=segment["total_size"],
        stream=segment["stream"],
        pool_id=(pool_id[0], pool_id[1]),
        page_bytes=int(segment.get("page_bytes", 0)),
        flags=(LARGE if segment["segment_type"] == "large" else 0)
        | (EXPANDABLE if segment.get("is_expandable") else 0)
        | (PRIVATE if is_private else 0),
        blocks=blocks,
        firsts=firsts,
        stacks=stacks if any(stacks or ()) else None,
        plan=plan_empty_cache([segment]),
        largest_free_bytes=0
        if is_private
        else max((size for size, _, word in blocks if word == FREE_STATE), default=0),
    )
