"""Asks for one look at the memory map of a rank whose memory lies in pieces, now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from vramscope_server.findings.judging import Judgement

EVERY_S: Final = 60.0
"""Between two looks at one rank. A look costs the job up to some milliseconds, as while somebody
watches its map for five seconds."""
_ABOUT_PIECES: Final = frozenset({"fragmentation", "thrash"})
_AT_ONCE: Final = 8
"""Ranks that are asked in one turn; the others come next."""
_MOST_RANKS: Final = 1024


class Looking(Protocol):
    """Asks agents."""

    def want_look(self, run_id: str, rank: int) -> None:
        """Ask an agent for its map as it is now."""
        ...


class MapLooks:
    """Decides when a map is wanted that nobody watches.

    Args:
        maps: asks for it.
        clock_s: a clock that does not go back.
    """

    def __init__(self, maps: Looking, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._maps = maps
        self._clock_s = clock_s
        self._asked_s: dict[tuple[str, int], float] = {}

    def look(self, judgement: Judgement) -> None:
        """Ask for the maps that would tell more of what was found, if it is time to."""
        now_s = self._clock_s()
        wanted = {
            rank
            for found in judgement.found
            if found.finding.kind in _ABOUT_PIECES and not found.finding.subject
            for rank in found.finding.ranks
        }
        due = [
            (judgement.run_id, rank)
            for rank in sorted(wanted)
            if now_s - self._asked_s.get((judgement.run_id, rank), float("-inf")) >= EVERY_S
        ]
        for key in due[:_AT_ONCE]:
            self._asked_s.pop(key, None)
            self._asked_s[key] = now_s
            self._maps.want_look(*key)
        while len(self._asked_s) > _MOST_RANKS:
            del self._asked_s[next(iter(self._asked_s))]
