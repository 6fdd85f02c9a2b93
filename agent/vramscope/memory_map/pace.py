"""How often the segments may be looked at, given what a look costs. Pure.

While PyTorch makes a list of its blocks it holds the GIL: 0.24 ms for 1,000 blocks, 16 ms for
50,000 on an H200 machine, and going through that list takes about as long again. All of it is
taken from the job, so a look that costs more is taken less often.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WATCHED_INTERVAL_S: Final = 0.5
WATCHED_FRACTION: Final = 0.0025
"""Of one core, while somebody looks at the map."""
IDLE_INTERVAL_S: Final = 10.0
IDLE_FRACTION: Final = 0.0002
"""Of one core, for the numbers of the samples alone."""
_LONGEST_WATCHED_S: Final = 30.0
_LONGEST_IDLE_S: Final = 600.0
"""What would come more seldom than that is not a rate: only on request."""
_REMEMBERED: Final = 5
"""Looks whose median is what one costs: a single one may have been stopped in the middle."""
_CERTAIN_FROM: Final = 3
"""So many have to be known before there is no rate at all."""
_DEAR_BLOCKS: Final = 200_000
"""So many blocks are looked at on request only, before it is known what they cost."""


class MapPace:
    """The interval between two looks."""

    def __init__(self) -> None:
        self._looks_ns: deque[int] = deque(maxlen=_REMEMBERED)
        self._frames_ns: deque[int] = deque(maxlen=_REMEMBERED)

    @property
    def cost_ns(self) -> int | None:
        """What one look costs with its frame, ``None`` before the first."""
        return _median(self._looks_ns) + _median(self._frames_ns) if self._looks_ns else None

    def account_look(self, cost_ns: int) -> None:
        """Take what one look has cost."""
        self._looks_ns.append(cost_ns)

    def account_frame(self, cost_ns: int) -> None:
        """Take what making a frame of a look has cost; another thread may do so."""
        self._frames_ns.append(cost_ns)

    def interval_s(self, *, is_watched: bool) -> float | None:
        """Seconds from one look to the next; ``None`` is on request only."""
        if is_watched:
            interval_s = (self.cost_ns or 0) / WATCHED_FRACTION / 1e9
            shortest_s, longest_s = WATCHED_INTERVAL_S, _LONGEST_WATCHED_S
        else:
            interval_s = _median(self._looks_ns) / IDLE_FRACTION / 1e9
            shortest_s, longest_s = IDLE_INTERVAL_S, _LONGEST_IDLE_S
        if interval_s > longest_s and len(self._looks_ns) >= _CERTAIN_FROM:
            return None
        return min(max(shortest_s, interval_s), longest_s)

    def may_try(self, block_count: int) -> bool:
        """Whether a first look, whose cost nobody knows, is worth the risk."""
        return bool(self._looks_ns) or block_count <= _DEAR_BLOCKS


def _median(costs_ns: deque[int]) -> int:
    """The middle one; 0 without any."""
    ordered = sorted(costs_ns.copy())
    return ordered[len(ordered) // 2] if ordered else 0
