"""One stream in the writer thread: what came in since the last commit, and the open chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, select

from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import BatchKind, CommandUpdate, Event, Goodbye, Lost
from vramscope_server.registry.stream_summary import StreamSummary
from vramscope_server.rows import ColumnLayout, Rows
from vramscope_server.store import rollup_cascade, tables
from vramscope_server.store.chunk_builder import ChunkBuilder, SealedChunk
from vramscope_server.store.column_codec import compress_fast, decompress, encode_groups
from vramscope_server.store.field_tables import load_layout
from vramscope_server.store.rollup_cascade import RollupRow
from vramscope_server.store.submission import Submission

KINDS: Final[tuple[BatchKind, ...]] = ("sample", "step")


@dataclass(slots=True)
class PendingRows:
    """Rows of the database that wait for the next commit. Blobs are encoded already."""

    chunks: list[tuple[ColumnLayout, dict[str, Any]]] = field(
        default_factory=list[tuple[ColumnLayout, dict[str, Any]]]
    )
    rollups: list[tuple[ColumnLayout, RollupRow]] = field(
        default_factory=list[tuple[ColumnLayout, RollupRow]]
    )
    heads: list[tuple[ColumnLayout, dict[str, Any]]] = field(
        default_factory=list[tuple[ColumnLayout, dict[str, Any]]]
    )
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    updates: list[CommandUpdate] = field(default_factory=list[CommandUpdate])
    end: dict[str, Any] = field(default_factory=dict[str, Any])
    cascaded_window: int | None = None


class StreamState:
    """Takes messages in memory and turns them into rows of the database; commits nothing.

    What is in memory may run ahead of the database; the database never holds half of a message.
    Use :func:`load_stream` to make one.
    """

    def __init__(
        self,
        uid: str,
        stream_id: int,
        run_id: str,
        rank: int,
        last_seq: int,
        summary: StreamSummary,
    ) -> None:
        self.uid = uid
        self.stream_id = stream_id
        self.run_id = run_id
        self.rank = rank
        self.committed_seq = last_seq
        self.last_seq = last_seq
        self.last_seen_ns = 0
        self.summary = summary
        self.builders: dict[BatchKind, ChunkBuilder] = {kind: _builder(kind) for kind in KINDS}
        self.head_positions: dict[BatchKind, int] = dict.fromkeys(KINDS, 0)
        self.pending = PendingRows()
        self.cascaded_window = -1
        """Window of the coarser rollups that the last sealed chunk lies in."""
        self.dirty = False
        self.ended = False
        """Nothing more is expected; leaves memory once everything is committed."""

    def absorb(self, submission: Submission) -> None:
        """Take one message in; a message that was taken before is ignored."""
        content = submission.content
        self.last_seen_ns = max(self.last_seen_ns, submission.received_ns)
        self.dirty = True
        if isinstance(content, Lost):
            self.summary.take_lost(content)
            return
        if submission.seq <= self.last_seq:
            return
        self.last_seq = submission.seq
        if isinstance(content, Rows):
            self.summary.take_counts(content)
            for chunk in self.builders[content.kind].append(content):
                self._add_chunk(chunk)
        elif isinstance(content, Event):
            self._add_event(content)
        elif isinstance(content, CommandUpdate):
            self.pending.updates.append(content)
        else:
            self._add_end(content)

    def seal_open(self) -> None:
        """End the open chunks: no more rows are expected."""
        for builder in self.builders.values():
            if len(builder):
                self.dirty = True
                self._add_chunk(builder.seal())

    def prepare(self) -> None:
        """Encode the rows that are new since the last head; to be called before each commit."""
        for kind, builder in self.builders.items():
            start = max(self.head_positions[kind], builder.position)
            parts = builder.open_rows(start)
            if not parts:
                continue
            rows = Rows.join(parts)
            self.summary.take_values(rows)
            head = {
                "stream_id": self.stream_id,
                "kind": kind,
                "start_position": start,
                "row_count": len(rows),
                "first_index": rows.first_index,
                "body": compress_fast(rows.to_bytes()),
            }
            self.pending.heads.append((rows.layout, head))
            self.head_positions[kind] = builder.end_position

    def committed(self) -> None:
        """What was pending is in the database now."""
        self.committed_seq = self.last_seq
        if self.pending.cascaded_window is not None:
            self.cascaded_window = self.pending.cascaded_window
        self.pending = PendingRows()
        self.dirty = False

    def _add_chunk(self, chunk: SealedChunk) -> None:
        start, rows = chunk
        self.summary.take_values(rows)
        times, steps = rows.time_ns, rows.step
        known_steps = steps[steps != UNKNOWN]
        row = {
            "stream_id": self.stream_id,
            "kind": rows.kind,
            "start_position": start,
            "row_count": len(rows),
            "first_index": rows.first_index,
            "start_ns": int(times[0]),
            "end_ns": int(times[-1]),
            "first_step": int(known_steps.min()) if len(known_steps) else UNKNOWN,
            "last_step": int(known_steps.max()) if len(known_steps) else UNKNOWN,
            "body": encode_groups(rows.groups()),
        }
        self.pending.chunks.append((rows.layout, row))
        if rows.kind == "sample":
            self.pending.rollups.append((rows.layout, rollup_cascade.of_chunk(rows, start)))

    def _add_event(self, event: Event) -> None:
        self.pending.events.append(
            {
                "run_id": self.run_id,
                "rank": self.rank,
                "time_ns": event.time_ns,
                "step": event.step,
                "kind": event.kind,
                "text": event.text,
                "data": msgspec.json.encode(event.data).decode(),
            }
        )

    def _add_end(self, goodbye: Goodbye) -> None:
        self.ended = True
        self.pending.end = {
            "ended_ns": goodbye.time_ns,
            "end_reason": goodbye.reason,
            "end_text": goodbye.text,
            "exit_code": goodbye.exit_code,
        }
        self.seal_open()


def _builder(kind: BatchKind, position: int = 0) -> ChunkBuilder:
    return ChunkBuilder(position, by_minute=kind == "sample")


def load_stream(connection: Connection, uid: str) -> StreamState | None:
    """State of a stream as the database has it: its open chunks are rebuilt from the heads."""
    table = tables.streams
    row = connection.execute(select(table).where(table.c.uid == uid)).one_or_none()
    if row is None:
        return None
    summary = msgspec.json.decode(row.summary, type=StreamSummary)
    state = StreamState(uid, row.id, row.run_id, row.rank, row.last_seq, summary)
    state.last_seen_ns = row.last_seen_ns
    for kind in KINDS:
        position = sealed_position(connection, row.id, kind)
        state.builders[kind] = _builder(kind, position)
        for rows in load_heads(connection, row.id, kind, position):
            state.builders[kind].append(rows)
        state.head_positions[kind] = state.builders[kind].end_position
    return state


def sealed_position(connection: Connection, stream_id: int, kind: BatchKind) -> int:
    """Position after the last sealed chunk of a stream."""
    table = tables.chunks
    end = connection.scalar(
        select(table.c.start_position + table.c.row_count)
        .where(table.c.stream_id == stream_id, table.c.kind == kind)
        .order_by(table.c.start_position.desc())
        .limit(1)
    )
    return int(end or 0)


def load_heads(
    connection: Connection, stream_id: int, kind: BatchKind, start_position: int
) -> list[Rows]:
    """Rows that are in no sealed chunk yet, oldest first."""
    table = tables.heads
    layouts: dict[int, ColumnLayout] = {}
    loaded: list[Rows] = []
    for head in connection.execute(
        select(table)
        .where(
            table.c.stream_id == stream_id,
            table.c.kind == kind,
            table.c.start_position >= start_position,
        )
        .order_by(table.c.start_position)
    ):
        layout = layouts.get(head.field_table_id)
        if layout is None:
            layout = layouts[head.field_table_id] = load_layout(connection, head.field_table_id)
        data = decompress(head.body, layout.row_bytes() * head.row_count)
        loaded.append(Rows.from_bytes(kind, head.first_index, layout, head.row_count, data))
    return loaded
