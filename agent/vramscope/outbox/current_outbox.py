"""The outbox of the stream that is current: what is put into it goes to another one after a switch.

A process that turns out to be another rank goes on in a stream of its own there, with rows that
are counted from 0 again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope_protocol.messages import Batch, DurableMessage, FieldTable


class CurrentOutbox:
    """Stands for one outbox at a time, for those that put things in.

    Args:
        outbox: the first one.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._first_index: dict[str, int] | None = None
        self.on_batch: Callable[[Batch], None] = _nothing
        """Sees each batch of rows on its way."""

    @property
    def tables(self) -> Mapping[int, FieldTable]:
        """The columns of each table that batches refer to."""
        return self._outbox.tables

    def switch(self, outbox: Outbox) -> None:
        """Let what is put from now on go to another, empty outbox."""
        outbox.tables.update(self._outbox.tables)
        # In this order: what is put meanwhile still fits to the outbox that it meets.
        self._outbox, self._first_index = outbox, {}

    def declare(self, table: FieldTable) -> None:
        """Make a field table known before the first batch that refers to it."""
        self._outbox.declare(table)

    def put(self, message: DurableMessage) -> None:
        """Take a message. Never blocks; any thread, re-entrant."""
        if isinstance(message, Batch):
            self.on_batch(message)
        if isinstance(message, Batch) and self._first_index is not None:
            message.first_index -= self._first_index.setdefault(message.kind, message.first_index)
        self._outbox.put(message)

    def send(self) -> None:
        """Have what was put sent: rows wait for this."""
        self._outbox.send()

    def count_lost(
        self, reason: str, *, samples: int = 0, steps: int = 0, messages: int = 0
    ) -> None:
        """Count what was lost before it became a message."""
        self._outbox.count_lost(reason, samples=samples, steps=steps, messages=messages)

    def spill(self) -> None:
        """Move the oldest waiting messages to the spool, if there is much in memory."""
        self._outbox.spill()

    @property
    def memory_bytes(self) -> int:
        """Memory that the queued messages take."""
        return self._outbox.memory_bytes

    @property
    def spool_bytes(self) -> int:
        """Bytes on disk."""
        return self._outbox.spool_bytes

    @property
    def queued_messages(self) -> int:
        """Messages in memory that are not acknowledged."""
        return self._outbox.queued_messages

    @property
    def losses(self) -> Losses:
        """What was dropped."""
        return self._outbox.losses


def _nothing(batch: Batch) -> None:
    """Nobody looks."""
