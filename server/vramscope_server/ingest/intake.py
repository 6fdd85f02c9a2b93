"""What happens to each message of an open stream: check, count, publish, and on to the writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from vramscope_protocol.errors import BAD_MESSAGE, ProtocolError
from vramscope_protocol.messages import (
    AgentMessage,
    AgentStatus,
    Batch,
    CommandUpdate,
    Event,
    FieldTable,
    Goodbye,
    Lost,
)
from vramscope_protocol.session import ServerSession
from vramscope_server.ingest.message_checks import (
    StreamChecks,
    check_lost,
    check_seq,
    check_status,
)
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.registry.registry import Registry
from vramscope_server.rows import ColumnLayout, Rows
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.submission import Submission

MAX_FIELD_TABLES: Final = 64
_OVERHEAD_BYTES: Final = 512
"""About what a queued message costs beside its content."""


class Publisher(Protocol):
    """Who is told at receipt. Called on the event loop; must neither block nor raise."""

    def publish_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        """New samples."""

    def publish_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        """New steps, of one life of the rank."""

    def publish_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Something happened: the event as the API has it."""

    def publish_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """What watching costs."""

    def run_changed(self, run_id: str) -> None:
        """The registry has something new to say of this run."""


class CommandSink(Protocol):
    """Who answers for commands. Called on the event loop; must neither block nor raise."""

    def command_update(self, run_id: str, rank: int, update: CommandUpdate) -> None:
        """A rank says where a command is; each message once."""

    def rank_connected(self, run_id: str, rank: int) -> None:
        """Commands can be sent to this rank now."""

    def rank_disconnected(self, run_id: str, rank: int) -> None:
        """Commands cannot be sent to this rank any more."""


class Intake:
    """Takes the messages of one connection, one after the other."""

    def __init__(
        self,
        stream: StreamRecord,
        session: ServerSession,
        registry: Registry,
        publisher: Publisher,
        commands: CommandSink,
        clock_ns: Callable[[], int],
    ) -> None:
        self._uid = stream.uid
        self._epoch = stream.epoch
        self._run_id = stream.run_id
        self._rank = stream.info.rank
        self._session = session
        self._registry = registry
        self._publisher = publisher
        self._commands = commands
        self._clock_ns = clock_ns
        self._checks = StreamChecks()
        self._layouts: dict[int, ColumnLayout] = {}

    def take(self, message: AgentMessage) -> Submission | None:
        """Publish one message and return what of it has to be stored.

        Raises:
            ProtocolError: the message says what cannot be.
        """
        if isinstance(message, Batch):
            return self._take_batch(message)
        if isinstance(message, (Event, CommandUpdate, Goodbye)):
            return self._take_durable(message)
        if isinstance(message, FieldTable):
            self._take_field_table(message)
        elif isinstance(message, AgentStatus):
            check_status(message)
            status = self._registry.take_status(self._uid, message)
            self._publisher.publish_status(self._run_id, self._rank, status)
        elif isinstance(message, Lost):
            held_bytes = check_lost(message)
            self._registry.take_lost(self._uid, message)
            self._publisher.run_changed(self._run_id)
            return self._submission(0, message, held_bytes + _OVERHEAD_BYTES)
        return None

    def _take_batch(self, batch: Batch) -> Submission | None:
        check_seq(batch.seq)
        if self._session.is_duplicate(batch.seq):
            return None
        layout = self._layouts[batch.table]
        rows = Rows.from_batch(batch.kind, batch.first_index, layout, batch.count, batch.columns)
        self._checks.check_rows(rows)
        if self._registry.take_rows(self._uid, batch.seq, rows):
            if batch.kind == "sample":
                self._publisher.publish_samples(self._run_id, self._rank, rows)
            else:
                life = self._registry.life_offset(self._uid)
                self._publisher.publish_steps(self._run_id, self._rank, rows, life)
            self._publisher.run_changed(self._run_id)
        return self._submission(batch.seq, rows, len(batch.columns) + _OVERHEAD_BYTES)

    def _take_durable(self, message: Event | CommandUpdate | Goodbye) -> Submission | None:
        check_seq(message.seq)
        held_bytes = self._checks.check_message(message)
        if self._session.is_duplicate(message.seq):
            return None
        is_new = self._registry.take_message(self._uid, message.seq)
        if isinstance(message, Event):
            if is_new:
                self._publisher.publish_event(self._run_id, self._event_payload(message))
        elif isinstance(message, CommandUpdate):
            if is_new:
                self._commands.command_update(self._run_id, self._rank, message)
        else:
            self._registry.take_goodbye(self._uid, message)
            self._publisher.run_changed(self._run_id)
        return self._submission(message.seq, message, held_bytes + _OVERHEAD_BYTES)

    def _take_field_table(self, table: FieldTable) -> None:
        if len(self._layouts) >= MAX_FIELD_TABLES and table.table not in self._layouts:
            raise ProtocolError(
                BAD_MESSAGE, f"expected at most {MAX_FIELD_TABLES} field tables a connection"
            )
        self._layouts[table.table] = ColumnLayout(table.fields)

    def _event_payload(self, event: Event) -> dict[str, Any]:
        return {
            "time_ns": event.time_ns,
            "rank": self._rank,
            "step": event.step,
            "kind": event.kind,
            "text": event.text,
            "data": event.data,
        }

    def _submission(
        self, seq: int, content: Rows | Event | CommandUpdate | Goodbye | Lost, size_bytes: int
    ) -> Submission:
        received_ns = self._clock_ns()
        return Submission(self._uid, seq, content, received_ns, size_bytes, self._epoch)
