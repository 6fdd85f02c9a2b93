"""The last minute of samples and the last steps, as they went to the outbox.

Batches are kept as they were sent, which is a fifth of what their numbers would take as objects.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vramscope_protocol.columns import UNKNOWN, decode_columns
from vramscope_protocol.messages import Batch, Field, FieldTable
from vramscope_protocol.series import STEP, TIME_NS

SAMPLES_NS: Final = 60_000_000_000
MAX_SAMPLES: Final = 300
"""Rows of samples in a report: of more, every second or third is left out."""
MAX_STEPS: Final = 256
MAX_KEPT_BYTES: Final = 8 << 20
"""Of each kind; then the oldest go."""

Waiting = Callable[[], Sequence[tuple[Sequence[Field], Sequence[Any]]]]
"""Rows that were taken and not sent yet, with their fields."""
Row = tuple[Sequence[Field], Sequence[Any]]


class RecentRows:
    """Keeps the batches of one kind of rows. Taken on one thread, read on any.

    Args:
        tables: the columns of each table that batches refer to.
        waiting: rows that are not in a batch yet.
        max_age_ns: what is older is forgotten; ``None`` is kept by number alone.
        max_rows: rows that are given.
    """

    def __init__(
        self,
        tables: Callable[[], Mapping[int, FieldTable]],
        waiting: Waiting,
        *,
        max_age_ns: int | None,
        max_rows: int,
    ) -> None:
        self._tables = tables
        self._waiting = waiting
        self._max_age_ns = max_age_ns
        self._max_rows = max_rows
        self._batches: deque[tuple[int, Batch]] = deque()
        self._bytes = 0
        self._rows = 0

    def take(self, batch: Batch) -> None:
        """Keep a batch, and forget what is too old."""
        now_ns = time.monotonic_ns()
        self._batches.append((now_ns, batch))
        self._bytes += len(batch.columns)
        self._rows += batch.count
        while len(self._batches) > 1 and self._is_too_much(now_ns):
            _, gone = self._batches.popleft()
            self._bytes -= len(gone.columns)
            self._rows -= gone.count

    def columns(self) -> dict[str, Any]:
        """The rows: ``time_ns``, ``number`` (the step of each) and every other column by name."""
        # A copy in one go: the sampler thread may add to it meanwhile.
        batches = list(self._batches)
        rows: list[Row] = []
        tables = self._tables()
        for _, batch in batches:
            table = tables.get(batch.table)
            if table is not None:
                rows += _rows_of(table, batch)
        rows += self._waiting()
        return _as_columns(_thinned(_in_order(rows), self._max_rows))

    def _is_too_much(self, now_ns: int) -> bool:
        taken_ns, oldest = self._batches[0]
        if self._bytes > MAX_KEPT_BYTES:
            return True
        if self._max_age_ns is not None:
            return now_ns - taken_ns > self._max_age_ns
        return self._rows - oldest.count >= self._max_rows


def _rows_of(table: FieldTable, batch: Batch) -> list[Row]:
    columns = decode_columns(batch.columns, len(table.fields), batch.count)
    return [(table.fields, values) for values in zip(*columns, strict=True)]


def _in_order(rows: list[Row]) -> list[Row]:
    """Without the row that was sent between the two looks, which is there twice."""
    seen: dict[Any, Row] = {}
    for row in rows:
        names = [field.name for field in row[0]]
        seen[row[1][names.index(TIME_NS)], row[1][names.index(STEP)]] = row
    return [seen[key] for key in sorted(seen)]


def _thinned(rows: list[Row], max_rows: int) -> list[Row]:
    every = -(-len(rows) // max_rows) or 1
    return rows[::-1][::every][::-1]


def _as_columns(rows: list[Row]) -> dict[str, Any]:
    names = list(dict.fromkeys(field.name for fields, _ in rows for field in fields))
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in names}
    for position, (fields, values) in enumerate(rows):
        for field, value in zip(fields, values, strict=True):
            columns[field.name][position] = _plain(value)
    time_ns = columns.pop(TIME_NS, [])
    number = columns.pop(STEP, [])
    known = {name: column for name, column in columns.items() if any(v is not None for v in column)}
    return {"time_ns": time_ns, "number": number, "columns": known}


def _plain(value: Any) -> Any:
    """A number as JSON can say it; what is not known is ``None``."""
    if value == UNKNOWN or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value
