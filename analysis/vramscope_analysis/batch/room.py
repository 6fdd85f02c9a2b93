"""How many bytes the peak of a step may take, with head-room and with what segments waste."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.evidence.run_evidence import RankEvidence

HEAD_ROOM: Final = 0.05

_PIECES: Final = 0.08
"""Part of the room that lies between live blocks at the peak, where no recording tells."""
_SEGMENT_STEP_BYTES: Final = 2 << 20
"""Segments of large tensors are a multiple of this: about half of it is wasted in each."""
_SHARED_SEGMENT_BYTES: Final = 20 << 20
"""Smaller tensors share segments of this size, of which the last is not full."""
_MOST_ROUNDING: Final = 0.06


@dataclass(frozen=True)
class Room:
    """What the allocator may hold, and what of it tensors may take.

    Args:
        limit_bytes: its limit, the memory of others taken off.
        allowed_bytes: the same less the head-room.
        waste_bytes: what segments are expected to waste of that.
    """

    limit_bytes: int
    allowed_bytes: int
    waste_bytes: int

    @property
    def for_tensors_bytes(self) -> int:
        """What the peak may take."""
        return self.allowed_bytes - self.waste_bytes

    @property
    def at_worst_bytes(self) -> int:
        """The same where half as much again is wasted."""
        return self.allowed_bytes - self.waste_bytes * 3 // 2


def room(rank: RankEvidence, head_room: float = HEAD_ROOM) -> Room | None:
    """The room of a rank; None where its limit is not known.

    Args:
        rank: the process.
        head_room: part of the limit that is to stay free.
    """
    limit_bytes = allocator_limit(rank)
    if limit_bytes is None:
        return None
    allowed_bytes = int(limit_bytes * (1 - head_room))
    segments = rank.steps.last("segment.all.current") or 0
    rounding_bytes = segments * _SEGMENT_STEP_BYTES // 2 + _SHARED_SEGMENT_BYTES // 2
    # Segments of a cache that is full of old sizes say nothing of those to come.
    rounding_bytes = min(rounding_bytes, int(_MOST_ROUNDING * allowed_bytes))
    return Room(limit_bytes, allowed_bytes, int(_PIECES * allowed_bytes) + rounding_bytes)
