"""Rows on their way to the outbox: appended on any thread, sent as column batches."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, Protocol

from msgspec import Struct

from vramscope_protocol.codec import MAX_BATCH_ROWS
from vramscope_protocol.columns import ITEM_BYTES, UNKNOWN, encode_columns
from vramscope_protocol.messages import Batch, BatchKind, Field, FieldTable

MAX_ROWS: Final = 4096
"""Rows that wait at most: 7 minutes at 10 Hz, 41 s at the cap. Then the oldest are dropped."""

_BATCH_BYTES: Final = 16 << 10
"""A batch that finds no room in a small outbox is dropped whole, so it is no larger than this."""

Value = int | float
Row = tuple[tuple[Field, ...], Sequence[Value]]
"""Values with their fields."""

_table_ids: Iterator[int] = count(1)


class RowSink(Protocol):
    """What a row buffer needs of the outbox. Nothing here may block."""

    def declare(self, table: FieldTable) -> None:
        """Name the columns of the batches that refer to ``table``."""
        ...

    def put(self, message: Batch) -> None:
        """Take a message; its ``seq`` is set there."""
        ...

    def count_lost(
        self, reason: str, *, samples: int = 0, steps: int = 0, messages: int = 0
    ) -> None:
        """Count rows that were dropped before they became a message."""
        ...


class FieldSet:
    """The columns of a row. A set with other columns is another table on the wire."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self.table = next(_table_ids)
        row_bytes = sum(ITEM_BYTES[field.code] for field in self.fields)
        self.batch_rows = max(1, min(MAX_BATCH_ROWS, _BATCH_BYTES // row_bytes))


class _Row(Struct, frozen=True):
    number: int
    fields: FieldSet
    values: Sequence[Value]


class RowBuffer:
    """Bounded rows of one kind, between the one thread that appends and the one that flushes.

    No lock: ``deque`` and ``count`` are atomic, and garbage collection may run an append inside
    another one. When the bound is reached the oldest row goes, and the gap in the row numbers
    tells the flush how many went.

    Args:
        kind: "sample" or "step".
        sink: where batches and field tables go.
        max_rows: the bound.
    """

    def __init__(self, kind: BatchKind, sink: RowSink, *, max_rows: int = MAX_ROWS) -> None:
        self._kind: BatchKind = kind
        self._sink = sink
        self._rows: deque[_Row] = deque(maxlen=max_rows)
        self._numbers = count()
        self._next_number = 0
        self._declared: set[int] = set()

    def append(self, fields: FieldSet, values: Sequence[Value]) -> None:
        """Add one row.

        Raises:
            ValueError: the values do not match the fields.
        """
        if len(values) != len(fields.fields):
            raise ValueError(f"expected {len(fields.fields)} values, got {len(values)}")
        self._rows.append(_Row(next(self._numbers), fields, values))

    def waiting(self) -> list[Row]:
        """Rows that wait for the next flush, oldest first, with their fields. Any thread."""
        # In one go, without a line of Python in which another thread could add to it.
        return [(row.fields.fields, row.values) for row in self._rows.copy()]

    def flush(self) -> None:
        """Hand every row to the sink, as few batches as tables, gaps and limits allow."""
        batch: list[_Row] = []
        for _ in range(len(self._rows)):
            row = self._rows.popleft()
            if batch and not self._continues(batch, row):
                self._send(batch)
                batch = []
            self._count_gap(row)
            batch.append(row)
        if batch:
            self._send(batch)

    def _continues(self, batch: list[_Row], row: _Row) -> bool:
        first = batch[0]
        return (
            row.fields is first.fields
            and row.number == self._next_number
            and len(batch) < first.fields.batch_rows
        )

    def _count_gap(self, row: _Row) -> None:
        lost = row.number - self._next_number
        if lost > 0:
            if self._kind == "sample":
                self._sink.count_lost("row_buffer_full", samples=lost)
            else:
                self._sink.count_lost("row_buffer_full", steps=lost)
        self._next_number = row.number + 1

    def _send(self, rows: list[_Row]) -> None:
        fields = rows[0].fields
        if fields.table not in self._declared:
            self._sink.declare(FieldTable(fields.table, list(fields.fields)))
            self._declared.add(fields.table)
        values = zip(*(row.values for row in rows), strict=True)
        columns = [
            _column(field.code, column) for field, column in zip(fields.fields, values, strict=True)
        ]
        self._sink.put(
            Batch(
                seq=0,
                kind=self._kind,
                table=fields.table,
                first_index=rows[0].number,
                count=len(rows),
                columns=encode_columns(columns),
            )
        )


def _column(code: str, values: Sequence[Any]) -> array[Any]:
    try:
        return array(code, values)
    except (TypeError, OverflowError):
        # One value of another type (a new torch, a user's own) must not cost the whole batch.
        return array(code, [_clean(code, value) for value in values])


def _clean(code: str, value: Any) -> Value:
    if code == "q":
        fits = isinstance(value, int) and -(2**63) <= value < 2**63
        return value if fits else UNKNOWN
    return float(value) if isinstance(value, (int, float)) else math.nan
