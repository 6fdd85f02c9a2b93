"""The rows of one rank, from its beginning until now, in bounded memory.

The newest are whole. Behind them there is every second block of rows, behind those every fourth,
and so on: a run that is ten times as long takes three and a half times a half window more. Blocks
hold neighbours together, so that what a step differs from the one before it can still be seen.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.columns import NO_ROWS, UNKNOWN
from vramscope_analysis.evidence.columns import Rows as EvidenceRows
from vramscope_protocol.series import STEP, TIME_NS
from vramscope_server.rows import Rows

MAX_COLUMNS: Final = 160
"""Columns that are kept; those that come beyond it are not judged."""
MAX_WAITING: Final = 4096
"""Batches that wait to be taken in; beyond it they are taken in at once."""

_NOT_JUDGED: Final = ("agent.", "device.power", "device.temperature", "device.utilization")

Column = NDArray[Any]


class RowHistory:
    """Keeps rows as they come. What :meth:`rows` gave out is never changed afterwards.

    Args:
        head: so many of the first rows always stay.
        block: rows that are kept or left out together.
    """

    def __init__(self, head: int, block: int) -> None:
        self._head = head
        self._block = block
        self._waiting: deque[Rows] = deque()
        self._columns: dict[str, Column] = {}
        self._index = np.zeros(0, np.int64)
        """Which row of all that ever came each one is."""
        self._count = 0
        self._taken = 0
        self._thinned_at = 0

    def __len__(self) -> int:
        return self._count + sum(len(rows) for rows in self._waiting)

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        waiting = sum(rows.layout.row_bytes() * len(rows) for rows in self._waiting)
        return waiting + (len(self._columns) + 1) * len(self._index) * 8

    def append(self, rows: Rows) -> None:
        """Take rows that came; cheap."""
        self._waiting.append(rows)
        if len(self._waiting) > MAX_WAITING:
            self._take_waiting()

    def put_before(self, earlier: EvidenceRows) -> None:
        """Put rows in front of everything that came so far: those that are older than that."""
        self._take_waiting()
        times = self._columns[TIME_NS][: self._count] if self._count else earlier.time_ns[:0]
        kept = len(earlier) if not len(times) else int(np.searchsorted(earlier.time_ns, times[0]))
        if not kept:
            return
        old = {name: column[: self._count] for name, column in self._columns.items()}
        before: dict[str, Column] = {TIME_NS: earlier.time_ns[:kept]}
        if earlier.number is not None:
            before[STEP] = earlier.number[:kept]
        for name, column in earlier.columns.items():
            if is_judged(name):
                before[name] = _wide(column[:kept])
        names = list(dict.fromkeys([*before, *old]))[:MAX_COLUMNS]
        self._columns = {
            name: _joined(before.get(name), kept, old.get(name), self._count) for name in names
        }
        self._index = np.concatenate([np.arange(kept), self._index[: self._count] + kept])
        self._count += kept
        self._taken += kept

    def rows(self, window: int) -> EvidenceRows:
        """What is kept, as judges read it.

        Args:
            window: so many of the newest rows are whole.
        """
        self._take_waiting()
        if self._count > max(window, self._thinned_at + self._thinned_at // 4):
            self._thin(window)
        if not self._count:
            return NO_ROWS
        columns = {name: column[: self._count] for name, column in self._columns.items()}
        return EvidenceRows(
            columns.pop(TIME_NS), columns, columns.pop(STEP, np.zeros(self._count, np.int64))
        )

    def _take_waiting(self) -> None:
        coming = sum(len(rows) for rows in self._waiting)
        if not coming:
            return
        self._make_room(coming)
        while self._waiting:
            # Those with the same columns in one go: a batch has few rows.
            first = self._waiting.popleft()
            alike = [first]
            while self._waiting and self._waiting[0].layout is first.layout:
                alike.append(self._waiting.popleft())
            self._take(Rows.join(alike))

    def _take(self, rows: Rows) -> None:
        start, end = self._count, self._count + len(rows)
        for name in rows.layout.index:
            column = rows.column(name)
            if column is None or not is_judged(name):
                continue
            kept = self._columns.get(name)
            if kept is None:
                if len(self._columns) >= MAX_COLUMNS:
                    continue
                kept = self._columns[name] = _unknown(len(self._index), column.dtype.kind)
            if kept.dtype.kind == column.dtype.kind:
                kept[start:end] = column
            else:  # an agent that changed the type of a series
                self._columns[name] = _joined(kept[:start], start, _wide(column), len(rows))
                self._columns[name] = _grown(self._columns[name], len(self._index))
        self._index[start:end] = np.arange(self._taken, self._taken + len(rows))
        self._count = end
        self._taken += len(rows)

    def _make_room(self, coming: int) -> None:
        if self._count + coming <= len(self._index):
            return
        capacity = max(64, self._count + coming + (self._count + coming) // 2)
        # New arrays: the old ones may have been given out.
        self._columns = {
            name: _grown(column[: self._count], capacity) for name, column in self._columns.items()
        }
        self._index = _grown(self._index[: self._count], capacity)

    def _thin(self, window: int) -> None:
        index = self._index[: self._count]
        age = self._taken - index
        level = np.where(age > window, 1 + np.log2(np.maximum(age / window, 1.0)).astype(int), 0)
        keep = (index < self._head) | ((index // self._block) % (1 << level) == 0)
        at = np.flatnonzero(keep)
        self._columns = {name: column[at] for name, column in self._columns.items()}
        self._index = index[at]
        self._count = self._thinned_at = len(at)


def is_judged(name: str) -> bool:
    """Whether a column is kept for the judges."""
    return not name.startswith(_NOT_JUDGED)


def _wide(column: Column) -> Column:
    return column.astype(np.float64 if column.dtype.kind == "f" else np.int64, copy=False)


def _unknown(count: int, kind: str) -> Column:
    return np.full(count, np.nan) if kind == "f" else np.full(count, UNKNOWN, np.int64)


def _grown(column: Column, capacity: int) -> Column:
    grown = _unknown(capacity, column.dtype.kind)
    grown[: len(column)] = column
    return grown


def _joined(before: Column | None, count: int, after: Column | None, more: int) -> Column:
    """One column behind another; unknown where one is missing, floats where one is."""
    kinds = {column.dtype.kind for column in (before, after) if column is not None}
    if "f" in kinds:
        before, after = _float(before), _float(after)
    kind = "f" if "f" in kinds else "i"
    parts = (
        _unknown(count, kind) if before is None else before,
        _unknown(more, kind) if after is None else after,
    )
    return np.concatenate(parts)


def _float(column: Column | None) -> Column | None:
    if column is None or column.dtype.kind == "f":
        return column
    return np.where(column == UNKNOWN, np.nan, column.astype(np.float64))
