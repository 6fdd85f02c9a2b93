"""One message of the outbox as it waits: encoded, with what must be known to send or count it."""

from __future__ import annotations

from typing import Final, NamedTuple

from vramscope.outbox.losses import Losses
from vramscope_protocol.codec import encode
from vramscope_protocol.messages import Batch, DurableMessage

SAMPLES: Final = 0
STEPS: Final = 1
OTHER: Final = 2
NO_TABLE: Final = -1

# What an entry costs beside its frame: the tuple, the bytes object, its place in the deque.
ENTRY_OVERHEAD_BYTES: Final = 160


class Entry(NamedTuple):
    """An encoded durable message. ``table`` is the field table of a batch, else ``NO_TABLE``."""

    seq: int
    kind: int
    rows: int
    table: int
    frame: bytes

    @property
    def size_bytes(self) -> int:
        """Memory that the entry takes."""
        return len(self.frame) + ENTRY_OVERHEAD_BYTES


def entry_of(message: DurableMessage, seq: int) -> Entry:
    """Number a message and encode it."""
    message.seq = seq
    if isinstance(message, Batch):
        kind = SAMPLES if message.kind == "sample" else STEPS
        return Entry(seq, kind, message.count, message.table, _frame(message))
    return Entry(seq, OTHER, 1, NO_TABLE, _frame(message))


def count_lost(losses: Losses, reason: str, entry: Entry) -> None:
    """Count one entry as dropped."""
    losses.count(
        reason,
        samples=entry.rows if entry.kind == SAMPLES else 0,
        steps=entry.rows if entry.kind == STEPS else 0,
        messages=entry.rows if entry.kind == OTHER else 0,
        seq=entry.seq,
    )


def _frame(message: DurableMessage) -> bytes:
    # The encoder leaves its room to grow, half as much again, behind the frame: a copy has none.
    return bytes(memoryview(encode(message)))
