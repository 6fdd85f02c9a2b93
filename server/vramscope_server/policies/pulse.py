"""Whether what a rank sends is of now. Pure: the clock is passed in.

An agent that was away sends what it kept, oldest first: an hour of it may come within seconds, and
none of it says how things are. The clocks of two machines may differ by more than that, so times
are not compared, only how fast they go.
"""

from __future__ import annotations

from typing import Final

SILENT_NS: Final = 15 * 10**9
"""A rank that sends nothing for so long is not known any more; agents look every 10 s at least."""
_FASTEST: Final = 1.5
_SLACK_NS: Final = 10**9
"""Rows come in batches of up to a second."""


class Pulse:
    """The times of one rank's rows, beside those of the server's clock."""

    __slots__ = ("_newest_ns", "_seen_ns", "_seen_row_ns", "is_fresh")

    def __init__(self) -> None:
        self._newest_ns: int | None = None
        self._seen_ns = 0
        self._seen_row_ns: int | None = None
        self.is_fresh = False
        """As of the last look."""

    def heard(self, row_ns: int) -> None:
        """A row came, of this time of the agent's clock."""
        self._newest_ns = row_ns

    def look(self, now_ns: int) -> bool:
        """Whether its newest row is of now; to be asked about once a second."""
        newest_ns, before_ns = self._newest_ns, self._seen_row_ns
        waited_ns = now_ns - self._seen_ns
        if newest_ns is None:
            return False
        if before_ns is not None and newest_ns == before_ns:
            self.is_fresh &= 0 <= waited_ns <= SILENT_NS
            return self.is_fresh
        came_ns = 0 if before_ns is None else newest_ns - before_ns
        # Of the first row it is not known whether more wait behind it. One from before the last
        # one is after a clock was set back.
        is_steady = 0 < came_ns <= waited_ns * _FASTEST + _SLACK_NS
        self.is_fresh = is_steady and waited_ns <= SILENT_NS
        self._seen_ns, self._seen_row_ns = now_ns, newest_ns
        return self.is_fresh
