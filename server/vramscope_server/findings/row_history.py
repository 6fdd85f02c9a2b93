"""The rows of one rank, from its beginning until now, in bounded memory.

The newest are whole. Behind them two of each four rows stay, behind those two of each eight, and
so on, so that a run that is twice as long takes half a window more. The two are the lowest and the
highest: what memory came down to, and what it went up to. Nothing is an average.
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
"""Batches that wait until somebody asks; beyond it the oldest are lost. A run that is judged does
not come near it."""

_MOST: Final = 1 << 60
_NOT_JUDGED: Final = ("agent.", "device.power", "device.temperature", "device.utilization")

Column = NDArray[Any]


class RowHistory:
    """Keeps rows as they come. What :meth:`rows` gave out is never changed afterwards.

    :meth:`append` may be called in another thread than all else.

    Args:
        head: so many of the first rows always stay.
        lowest: the column whose lowest row of each group stays; without it the first.
        highest: the column whose highest row stays; without it the first.
    """

    def __init__(self, head: int = 0, lowest: str = "", highest: str = "") -> None:
        self._head = head
        self._lowest = lowest
        self._highest = highest
        self._waiting: deque[Rows] = deque(maxlen=MAX_WAITING)
        self._columns: dict[str, Column] = {}
        self._index: Column = np.zeros(0, np.int64)
        """Which row of all that ever came each one is."""
        self._count = 0
        self._taken: int = 0
        self._thinned_at = 0

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes, without what waits."""
        return (len(self._columns) + 1) * len(self._index) * 8

    def append(self, rows: Rows) -> None:
        """Take rows that came; cheap."""
        self._waiting.append(rows)

    def put_before(self, earlier: EvidenceRows) -> None:
        """Put rows in front of everything that came so far: those that are older than that."""
        self._take_waiting()
        times = self._columns[TIME_NS][: self._count] if self._count else earlier.time_ns[:0]
        # What the store has and came here as well is here already.
        kept = int(np.count_nonzero(earlier.time_ns < times[0])) if len(times) else len(earlier)
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
        # Those with the same columns in one go: a batch has few rows.
        alike: list[Rows] = []
        while self._waiting:
            rows = self._waiting.popleft()
            if alike and alike[0].layout is not rows.layout:
                self._take(Rows.join(alike))
                alike = []
            alike.append(rows)
        if alike:
            self._take(Rows.join(alike))

    def _take(self, rows: Rows) -> None:
        self._make_room(len(rows))
        start, end = self._count, self._count + len(rows)
        for name in rows.layout.index:
            column = rows.column(name)
            if column is None or not is_judged(name):
                continue
            column = _possible(column) if name != TIME_NS else column
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
        age = np.maximum(self._taken - index, 1)
        level = np.where(age > window, 1 + np.log2(age / window).astype(np.int64), 0)
        # Groups of one level lie within those of the next, so that what stays of a large one is
        # what would have stayed of all its rows.
        group = np.where((level == 0) | (index < self._head), -1 - index, index >> (level + 1))
        kept = [
            _first_of_each(level, group, self._order(self._lowest, 1)),
            _first_of_each(level, group, self._order(self._highest, -1)),
        ]
        at = np.unique(np.concatenate(kept))
        self._columns = {name: column[at] for name, column in self._columns.items()}
        self._index = index[at]
        self._count = self._thinned_at = len(at)

    def _order(self, name: str, sign: int) -> Column:
        """The rows by a column, those that do not know it last; by when they came without it."""
        column = self._columns.get(name)
        if column is None:
            return np.arange(self._count)
        values = column[: self._count].astype(np.float64)
        is_known = np.isfinite(values) & (column[: self._count] != UNKNOWN)
        return np.where(is_known, sign * values, np.inf)


def _first_of_each(level: Column, group: Column, order: Column) -> Column:
    """Of each group the row that comes first in an order."""
    by = np.lexsort((order, group, level))
    starts = np.ones(len(by), np.bool_)
    starts[1:] = (np.diff(group[by]) != 0) | (np.diff(level[by]) != 0)
    return by[starts]


def is_judged(name: str) -> bool:
    """Whether a column is kept for the judges."""
    return not name.startswith(_NOT_JUDGED)


def _possible(column: Column) -> Column:
    """The column with what no count and no size can be as unknown: whoever sent it, a judge that
    computes with it must not stumble."""
    is_float = column.dtype.kind == "f"
    is_possible = (column <= _MOST) & (column >= -_MOST)
    if is_possible.all():
        return column
    return np.where(is_possible, column, np.nan if is_float else UNKNOWN)


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
