"""With which batch a change may begin, where windows of accumulation are counted from the first."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from typing import TypeAlias

Count: TypeAlias = "Callable[[int], int | None]"
"""Batches of the epoch that runs if the change begins with a certain one; ``None`` if unknown."""


class FromTheFirst:
    """Whoever accumulates counts batches from the first of an epoch, whatever the accumulation."""

    offset = 0
    """By how much its count of batches is ahead of that of the epoch."""

    def first_batch(self, drawn: int, now: int, then: int, count: Count) -> int:
        """The first batch, not drawn yet, with which a window of either accumulation begins.

        Args:
            drawn: batches that are drawn.
            now: accumulation so far.
            then: accumulation afterwards.
            count: batches of the epoch, by where the change begins.
        """
        del count
        return switch_at(drawn, self.offset, now, then)


def switch_at(drawn: int, offset: int, now: int, then: int) -> int:
    """The first batch, not drawn yet, at which a window of either accumulation begins.

    Args:
        drawn: batches that are drawn.
        offset: what is added to a batch's number in the count of whoever accumulates.
        now: accumulation so far.
        then: accumulation afterwards.
    """
    window = lcm(now, then)
    return drawn + -(drawn + offset) % window
