"""An outbox that keeps everything, and reads batches back as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vramscope.outbox.losses import Losses
from vramscope_protocol.columns import decode_columns
from vramscope_protocol.messages import Batch, BatchKind, CommandUpdate, FieldTable


class RecordingOutbox:
    """Has the interface that rows, steps, commands and the sampler need of the outbox."""

    def __init__(self) -> None:
        self.tables: dict[int, FieldTable] = {}
        self.messages: list[Any] = []
        self.lost: list[tuple[str, int, int]] = []
        self.spills = 0
        self.sends = 0
        self.memory_bytes = 0
        self.spool_bytes = 0
        self.queued_messages = 0
        self.losses = Losses()
        self.on_batch: Callable[[Batch], object] = id
        """Sees each batch of rows on its way."""

    def declare(self, table: FieldTable) -> None:
        assert table.table not in self.tables, "declared twice"
        self.tables[table.table] = table

    def put(self, message: Any) -> None:
        assert message.seq == 0, "the outbox gives the number"
        if isinstance(message, Batch):
            self.on_batch(message)
        self.messages.append(message)

    def send(self) -> None:
        self.sends += 1

    def spill(self) -> None:
        self.spills += 1

    def count_lost(
        self, reason: str, *, samples: int = 0, steps: int = 0, messages: int = 0
    ) -> None:
        self.lost.append((reason, samples, steps))

    def batches(self, kind: BatchKind) -> list[Batch]:
        """Batches of one kind in order."""
        return [each for each in self.messages if isinstance(each, Batch) and each.kind == kind]

    def rows(self, kind: BatchKind) -> list[dict[str, Any]]:
        """Rows of one kind in order, by column name."""
        rows: list[dict[str, Any]] = []
        for batch in self.batches(kind):
            fields = self.tables[batch.table].fields
            columns = decode_columns(batch.columns, len(fields), batch.count)
            for values in zip(*columns, strict=True):
                row: Sequence[Any] = values
                rows.append({field.name: value for field, value in zip(fields, row, strict=True)})
        return rows

    def updates(self, identity: str) -> list[CommandUpdate]:
        """Updates of one command in order."""
        return [
            each
            for each in self.messages
            if isinstance(each, CommandUpdate) and each.id == identity
        ]

    def states(self, identity: str) -> list[str]:
        """States that one command went through."""
        return [update.state for update in self.updates(identity)]
