"""How often the segments may be looked at, given what a look costs. Pure.

While PyTorch makes a list of its blocks it holds the GIL: 0.24 ms for 1,000 blocks, 16 ms for
50,000 on an H200 machine, and going through that list takes about as long again. All of it is
taken from the job, so a look that costs more is taken less often.
"""

from __future__ import annotations

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
_WEIGHT: Final = 0.3
_DEAR_BLOCKS: Final = 200_000
"""So many blocks are looked at on request only, before it is known what they cost."""


class MapPace:
    """The interval between two looks."""

    def __init__(self) -> None:
        self._look_ns: float | None = None
        self._frame_ns = 0.0

    @property
    def cost_ns(self) -> float | None:
        """What one look costs with its frame, ``None`` before the first."""
        return None if self._look_ns is None else self._look_ns + self._frame_ns

    def account_look(self, cost_ns: int) -> None:
        """Take what one look has cost. A dearer one counts at once, a cheaper one by and by."""
        self._look_ns = _towards(self._look_ns, cost_ns)

    def account_frame(self, cost_ns: int) -> None:
        """Take what making a frame of a look has cost."""
        self._frame_ns = _towards(self._frame_ns, cost_ns)

    def interval_s(self, *, is_watched: bool) -> float | None:
        """Seconds from one look to the next; ``None`` is on request only."""
        look_ns = self._look_ns or 0.0
        if is_watched:
            interval_s = (look_ns + self._frame_ns) / WATCHED_FRACTION / 1e9
            return _within(interval_s, WATCHED_INTERVAL_S, _LONGEST_WATCHED_S)
        return _within(look_ns / IDLE_FRACTION / 1e9, IDLE_INTERVAL_S, _LONGEST_IDLE_S)

    def may_try(self, block_count: int) -> bool:
        """Whether a first look, whose cost nobody knows, is worth the risk."""
        return self._look_ns is not None or block_count <= _DEAR_BLOCKS


def _towards(known_ns: float | None, cost_ns: int) -> float:
    if known_ns is None or cost_ns > known_ns:
        return float(cost_ns)
    return known_ns + _WEIGHT * (cost_ns - known_ns)


def _within(interval_s: float, shortest_s: float, longest_s: float) -> float | None:
    return None if interval_s > longest_s else max(shortest_s, interval_s)
