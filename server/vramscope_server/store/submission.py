"""What ingest hands to the writer thread: one message of one stream, already decoded."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_protocol.messages import CommandUpdate, Event, Goodbye, Lost
from vramscope_server.rows import Rows


@dataclass(frozen=True, slots=True)
class Submission:
    """One message to store.

    Args:
        stream: uid of a stream that is registered in the store.
        seq: sequence number of a durable message; 0 for :class:`Lost`, which is not acked.
        content: what to store; the columns of a batch come as :class:`Rows`.
        received_ns: when the server received it, by its own clock.
        size_bytes: how much memory it holds until it is committed.
        epoch: of the registration that it came under.
    """

    stream: str
    seq: int
    content: Rows | Event | CommandUpdate | Goodbye | Lost
    received_ns: int
    size_bytes: int
    epoch: int = 0

    @property
    def is_urgent(self) -> bool:
        """Whether a process waits for its ack: it exits once its goodbye is committed."""
        return isinstance(self.content, Goodbye)
