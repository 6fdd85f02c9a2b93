"""What a stream amounts to so far: rows received and lost, newest step, newest gauges. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Lost
from vramscope_server.rows import Rows

UNREPORTED: Final = "unreported"
"""Reason of rows that are missing from the agent's own count without a word from the agent."""

_PEAK_SERIES: Final = ("reserved_bytes.all.peak", "reserved_bytes.all.current")
_USED_SERIES: Final = "device.used_bytes"
_TOTAL_SERIES: Final = "device.total_bytes"


class RowCounts(Struct):
    """Rows of one kind: received, missing, and the index that comes next."""

    received: int = 0
    missing: int = 0
    next_index: int = 0
    losses: dict[str, int] = field(default_factory=dict[str, int])
    """What the agent says it dropped, by reason; totals of the stream."""

    def take(self, first_index: int, count: int) -> None:
        """Count consecutive rows; a jump of the index counts as missing rows."""
        self.received += count
        self.missing += max(0, first_index - self.next_index)
        self.next_index = max(self.next_index, first_index + count)

    def lost_by_reason(self) -> dict[str, int]:
        """What the agent reported, and what is missing beyond that."""
        unreported = self.missing - sum(self.losses.values())
        losses = {reason: count for reason, count in self.losses.items() if count}
        return losses | {UNREPORTED: unreported} if unreported > 0 else losses


class StreamSummary(Struct):
    """Running totals and newest values of one stream."""

    samples: RowCounts = field(default_factory=RowCounts)
    steps: RowCounts = field(default_factory=RowCounts)
    lost_messages: dict[str, int] = field(default_factory=dict[str, int])
    step: int | None = None
    first_step: int | None = None
    """Lowest step that has a row of its own."""
    used_bytes: int | None = None
    total_bytes: int | None = None
    peak_reserved_bytes: int | None = None

    def take_rows(self, rows: Rows) -> None:
        """Take a batch into account."""
        self.take_counts(rows)
        self.take_values(rows)

    def take_counts(self, rows: Rows) -> None:
        """The part of :meth:`take_rows` that needs every batch once and in order."""
        counts = self.samples if rows.kind == "sample" else self.steps
        counts.take(rows.first_index, len(rows))

    def take_values(self, rows: Rows) -> None:
        """The other part: newest and highest values, of several batches at once or again."""
        step = int(rows.step[-1])
        if step != UNKNOWN:
            self.step = step
        first = int(rows.step[0])
        if rows.kind == "step" and first != UNKNOWN:
            self.first_step = first if self.first_step is None else min(first, self.first_step)
        self.used_bytes = _newest(rows, _USED_SERIES, self.used_bytes)
        self.total_bytes = _newest(rows, _TOTAL_SERIES, self.total_bytes)
        for name in _PEAK_SERIES:
            highest = _highest(rows, name)
            if highest is not None:
                self.peak_reserved_bytes = max(highest, self.peak_reserved_bytes or 0)

    def take_lost(self, lost: Lost) -> None:
        """Take the agent's own loss totals into account."""
        self.samples.losses = dict(lost.samples)
        self.steps.losses = dict(lost.steps)
        self.lost_messages = dict(lost.messages)


def _newest(rows: Rows, name: str, before: int | None) -> int | None:
    column = rows.column(name)
    if column is None or column.dtype.kind != "i" or int(column[-1]) == UNKNOWN:
        return before
    return int(column[-1])


def _highest(rows: Rows, name: str) -> int | None:
    column = rows.column(name)
    if column is None or column.dtype.kind != "i":
        return None
    highest = int(column.max())  # the unknown integer is the smallest there is
    return None if highest == UNKNOWN else highest
