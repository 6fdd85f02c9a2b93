"""The open chunk of one stream and kind: takes rows, says when a chunk is full."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from vramscope_server.rows import Rows

MAX_CHUNK_ROWS: Final = 600
CHUNK_NS: Final = 60 * 1_000_000_000
_ENDLESS_NS: Final = 1 << 63


class SealedChunk(NamedTuple):
    """Rows that are complete, and how many of their kind the stream stored before them."""

    start_position: int
    rows: Rows


class ChunkBuilder:
    """Collects rows until 600 are there or a minute of ``time_ns`` ends.

    A chunk never crosses a minute, a field table or a jump of the agent's row index, so each one
    is a contiguous range of rows within one rollup window. Pure: nothing is stored here.

    Args:
        position: rows of this kind that the stream already stored in sealed chunks.
        by_minute: whether minutes end chunks. Steps have no rollups, and mostly less than 600 a
            minute: a long run of them is read from fewer chunks without it.
    """

    def __init__(
        self, position: int = 0, max_rows: int = MAX_CHUNK_ROWS, *, by_minute: bool = True
    ) -> None:
        self._max_rows = max_rows
        self._window_ns = CHUNK_NS if by_minute else _ENDLESS_NS
        self._parts: list[Rows] = []
        self._count = 0
        self._minute = 0
        self.position = position
        """Position of the first open row: rows stored in sealed chunks before it."""

    def __len__(self) -> int:
        return self._count

    @property
    def end_position(self) -> int:
        """Position after the last open row."""
        return self.position + self._count

    def append(self, rows: Rows) -> list[SealedChunk]:
        """Take rows in; return the chunks that they complete, oldest first."""
        sealed: list[SealedChunk] = []
        count = len(rows)
        start = 0
        while start < count:
            part = rows.part(start, count) if start else rows
            times = part.time_ns
            minute = int(times[0]) // self._window_ns
            if self._parts and not self._continues(part, minute):
                sealed.append(self.seal())
            fitting = min(count - start, self._max_rows - self._count)
            if int(times[fitting - 1]) // self._window_ns != minute:
                end_ns = (minute + 1) * self._window_ns
                fitting = int(np.searchsorted(times[:fitting], end_ns, side="left"))
            self._parts.append(part if start + fitting == count else part.part(0, fitting))
            self._count += fitting
            self._minute = minute
            if self._count >= self._max_rows:
                sealed.append(self.seal())
            start += fitting
        return sealed

    def seal(self) -> SealedChunk:
        """End the open chunk, which must not be empty."""
        sealed = SealedChunk(self.position, Rows.join(self._parts))
        self._parts = []
        self.position += self._count
        self._count = 0
        return sealed

    def open_rows(self, start_position: int) -> list[Rows]:
        """Open rows from ``start_position`` on; none of them is copied."""
        rows: list[Rows] = []
        end = self.end_position
        for part in reversed(self._parts):  # asked for once a commit, and for the newest few
            if end <= start_position:
                break
            start = end - len(part)
            # Mostly heads end where parts do, and then no part has to be cut.
            rows.append(
                part if start >= start_position else part.part(start_position - start, len(part))
            )
            end = start
        return rows[::-1]

    def _continues(self, rows: Rows, minute: int) -> bool:
        last = self._parts[-1]
        return (
            minute == self._minute
            and rows.first_index == last.first_index + len(last)
            and rows.layout.fingerprint == last.layout.fingerprint
        )
