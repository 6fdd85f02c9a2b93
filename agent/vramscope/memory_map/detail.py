"""How much of a map fits into a frame: every block, or fewer rows if there are too many. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from vramscope.memory_map.look import SegmentState
from vramscope_protocol.map_columns import BLOCK_BYTES, LARGE, SEGMENT_BYTES

MAX_BLOCKS: Final = 20_000
"""More rows than that no reader can follow, and no frame should carry."""
_KINDS: Final = 6
"""About the most kinds of blocks that one segment holds."""
_NO_LIMIT: Final = 2**62
_LEVELS: Final = (
    (_NO_LIMIT, _NO_LIMIT),
    (_KINDS, _NO_LIMIT),
    (_KINDS, 1024),
    (_KINDS, 256),
    (_KINDS, 64),
    (_KINDS, 16),
    (_KINDS, _KINDS),
)
"""Most blocks that a small and a large segment is shown with block by block; first what is best."""


class Detail(Struct, frozen=True):
    """Which segments are shown block by block, and which at all."""

    small_limit: int
    large_limit: int
    least: tuple[int, int] = (0, 0)
    """Segments that come before in the order of :func:`_rank` are left out."""

    def is_shown(self, state: SegmentState) -> bool:
        """Whether a segment is in the frame."""
        return _rank(state) >= self.least

    def is_whole(self, state: SegmentState) -> bool:
        """Whether each of its blocks has a row of its own."""
        limit = self.large_limit if state.flags & LARGE else self.small_limit
        return len(state.blocks) <= limit


def detail_for(segments: Mapping[int, SegmentState], max_bytes: int) -> Detail:
    """The most detail that fits into ``max_bytes`` and :data:`MAX_BLOCKS`."""
    detail = Detail(*_LEVELS[-1])
    for level in _LEVELS:
        detail = Detail(*level)
        if _fits(segments.values(), detail, max_bytes):
            return detail
    # More segments than fit: the largest hold nearly all of the memory.
    ranks = sorted(map(_rank, segments.values()), reverse=True)
    room = min(max_bytes // (SEGMENT_BYTES + _KINDS * BLOCK_BYTES), MAX_BLOCKS // _KINDS)
    return Detail(*_LEVELS[-1], least=ranks[min(max(1, room), len(ranks)) - 1])


def summary(segments: Mapping[int, SegmentState], detail: Detail) -> str:
    """What is not shown block by block, in words; empty if everything is."""
    left_out = [state for state in segments.values() if not detail.is_shown(state)]
    merged = [s for s in segments.values() if detail.is_shown(s) and not detail.is_whole(s)]
    parts: list[str] = []
    if merged:
        blocks = sum(len(state.blocks) for state in merged)
        parts.append(f"{blocks:,} blocks of {len(merged):,} segments are shown as one of each kind")
    if left_out:
        size = sum(state.size for state in left_out)
        parts.append(f"{len(left_out):,} small segments ({size >> 20:,} MiB) are left out")
    return "; ".join(parts)


def _rank(state: SegmentState) -> tuple[int, int]:
    return state.size, -state.address


def _fits(segments: Iterable[SegmentState], detail: Detail, max_bytes: int) -> bool:
    blocks = count = 0
    for state in segments:
        count += 1
        blocks += len(state.blocks) if detail.is_whole(state) else _KINDS
    return blocks <= MAX_BLOCKS and count * SEGMENT_BYTES + blocks * BLOCK_BYTES <= max_bytes
