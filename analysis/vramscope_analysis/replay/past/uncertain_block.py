"""A block of which only the least size is known."""

from __future__ import annotations

from typing import TypeAlias

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.allocator.rounding import MIN_BLOCK_BYTES, SMALL_BYTES

Group: TypeAlias = tuple[int, PoolId | None]
"""Stream and pool: blocks of one group compete for a request."""


class UncertainBlock:
    """A live block that may have kept the front of the free space behind it.

    Args:
        address: where it starts.
        rounded_bytes: what it takes up for certain.
        freed_at: entry that makes it free; until then nothing was placed into the space.
        group: whom the space serves.
        space_bytes: from its certain end to the next block.
        unsplit_bytes: most that it may have kept.
    """

    def __init__(
        self,
        address: int,
        rounded_bytes: int,
        freed_at: int,
        group: Group,
        space_bytes: int,
        unsplit_bytes: int,
    ) -> None:
        self.address = address
        self.end = address + rounded_bytes
        self.freed_at = freed_at
        self.group = group
        self.space_bytes = space_bytes
        self.unsplit_bytes = unsplit_bytes
        # One bit for each multiple of 512 B that it may have kept. What is left of the space is a
        # free block of the large pool, and those are larger than 1 MiB.
        most_bytes = min(unsplit_bytes, space_bytes - SMALL_BYTES - MIN_BLOCK_BYTES)
        self._possible = (1 << max(most_bytes, 0) // MIN_BLOCK_BYTES + 1) - 1

    def exclude(self, least_bytes: int, end_bytes: int) -> None:
        """The free space was not of ``least_bytes`` or more and below ``end_bytes``."""
        first = max(self.space_bytes - end_bytes + MIN_BLOCK_BYTES, 0) // MIN_BLOCK_BYTES
        last = min(self.space_bytes - least_bytes, self.unsplit_bytes) // MIN_BLOCK_BYTES
        if first <= last:
            self._possible &= ~((1 << last + 1) - (1 << first))

    def kept_bytes(self) -> tuple[int, int]:
        """Least and most that it may have kept; all that it could if no size explains the rest."""
        if not self._possible:
            return 0, self.unsplit_bytes
        least = (self._possible & -self._possible).bit_length() - 1
        return least * MIN_BLOCK_BYTES, (self._possible.bit_length() - 1) * MIN_BLOCK_BYTES
