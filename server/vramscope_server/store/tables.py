"""The tables, as SQLAlchemy Core sees them. What a database really has is made by migrations/."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata: Final = MetaData()

# SQLite numbers rows by itself only in an INTEGER primary key, which has 64 bits there anyway.
_RowId = BigInteger().with_variant(Integer, "sqlite")

runs: Final = Table(
    "runs",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", Text, nullable=False),
    Column("world_size", BigInteger, nullable=False),
    Column("emulated", Boolean, nullable=False),
    Column("user", Text, nullable=False),
    Column("script", Text, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("owner", Text, nullable=False, default=""),  # whose token began it; empty: not known
    Column("secret", String(64), nullable=False, default=""),  # hash of what its ranks know
    Index("runs_started", "started_ns"),
)

ranks: Final = Table(
    "ranks",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("rank", BigInteger, primary_key=True, autoincrement=False),
    Column("stream_id", BigInteger, nullable=False),  # the newest life of this rank
    Column("restarts", BigInteger, nullable=False),
)

streams: Final = Table(
    "streams",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("uid", String(128), nullable=False, unique=True),
    Column("run_id", String(128), nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("info", Text, nullable=False),  # RankInfo as JSON
    Column("created_ns", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("last_seen_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
    Column("end_reason", Text),
    Column("end_text", Text),
    Column("exit_code", BigInteger),
    Column("summary", Text, nullable=False),  # StreamSummary as JSON
    Column("secret", String(64), nullable=False, default=""),  # hash of what its process knows
    Index("streams_rank", "run_id", "rank", "id"),
)

field_tables: Final = Table(
    "field_tables",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("fields", Text, nullable=False),  # list of Field as JSON
)

chunks: Final = Table(
    "chunks",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("stream_id", BigInteger, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("field_table_id", BigInteger, nullable=False),
    Column("start_position", BigInteger, nullable=False),  # rows of this kind stored before it
    Column("row_count", BigInteger, nullable=False),
    Column("first_index", BigInteger, nullable=False),  # the agent's own count of its first row
    Column("start_ns", BigInteger, nullable=False),
    Column("end_ns", BigInteger, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("chunks_time", "stream_id", "kind", "end_ns"),
    Index("chunks_position", "stream_id", "kind", "start_position", unique=True),
)

heads: Final = Table(
    "heads",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("stream_id", BigInteger, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("field_table_id", BigInteger, nullable=False),
    Column("start_position", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("first_index", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("heads_position", "stream_id", "kind", "start_position", unique=True),
)

rollups: Final = Table(
    "rollups",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("stream_id", BigInteger, nullable=False),
    Column("level_s", BigInteger, nullable=False),
    Column("field_table_id", BigInteger, nullable=False),
    Column("start_position", BigInteger, nullable=False),  # sample rows [start, end) are in it
    Column("end_position", BigInteger, nullable=False),
    Column("start_ns", BigInteger, nullable=False),
    Column("end_ns", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("rollups_position", "stream_id", "level_s", "start_position", unique=True),
    Index("rollups_time", "stream_id", "level_s", "end_ns"),
)

events: Final = Table(
    "events",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("run_id", String(128), nullable=False),
    Column("rank", BigInteger),  # NULL: the run as a whole
    Column("time_ns", BigInteger, nullable=False),
    Column("step", BigInteger),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("data", Text, nullable=False),  # JSON object
    Index("events_time", "run_id", "time_ns"),
)

commands: Final = Table(
    "commands",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("run_id", String(128), nullable=False),
    Column("name", Text, nullable=False),
    Column("params", Text, nullable=False),  # JSON object
    Column("dry_run", Boolean, nullable=False),
    Column("ranks", Text, nullable=False),  # JSON list
    Column("state", String(16), nullable=False),
    Column("issued_by", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("deadline_ns", BigInteger, nullable=False),
    Column("finished_ns", BigInteger),
    Column("note", Text, nullable=False),
    Column("together", Boolean, nullable=False),  # all ranks at the same step, or none
    Column("at_step", BigInteger),  # that it was prepared for last
    Column("decision", String(8)),  # run or drop; NULL: not decided
    Column("decision_reason", Text, nullable=False),
    Column("decided_ns", BigInteger),
    Index("commands_run", "run_id", "created_ns"),
)

receipts: Final = Table(
    "receipts",
    metadata,
    Column("command_id", String(128), primary_key=True),
    Column("rank", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", String(128), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("time_ns", BigInteger, nullable=False),
    Column("receipt", Text, nullable=False),  # Receipt as JSON, {} before there is one
)

findings: Final = Table(
    "findings",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("run_id", String(128), nullable=False),
    Column("rank", BigInteger),  # NULL: the run as a whole
    Column("kind", String(64), nullable=False),
    Column("severity", String(16), nullable=False),
    Column("opened_ns", BigInteger, nullable=False),
    Column("resolved_ns", BigInteger),  # NULL: it holds
    Column("summary", Text, nullable=False),
    Column("data", Text, nullable=False),  # JSON object: evidence, culprits, remedies
    Column("subject", Text, nullable=False),
    Column("stage", String(16), nullable=False),  # suspected or confirmed
    Column("confirmed_ns", BigInteger),
    Column("is_final", Boolean, nullable=False),  # it held when its rank ended
    Column("judge", String(64), nullable=False),  # who finds it; empty: not asked in turn
    Column("muted", Text),  # JSON object
    Index("findings_run", "run_id", "opened_ns"),
    Index("findings_open", "resolved_ns"),
)

finding_mutes: Final = Table(
    "finding_mutes",
    metadata,
    Column("run_name", String(512), primary_key=True),
    Column("kind", String(64), primary_key=True),
    Column("subject", String(512), primary_key=True),
    Column("muted", Text, nullable=False),  # JSON object
)

tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),  # token, session (a browser's cookie) or frame
    Column("parent", Text, nullable=False),  # the token that a session or frame came from
    Column("run_id", Text),  # the only run that a frame's token is good for
    Column("scopes", Text, nullable=False),  # JSON list
    Column("created_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger),
    Column("revoked_ns", BigInteger),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("time_ns", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("command_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("ranks", Text, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    Column("params", Text, nullable=False),
    Column("result", Text, nullable=False),
    Index("audit_time", "time_ns"),
    Index("audit_command", "command_id"),
)

snapshots: Final = Table(
    "snapshots",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("run_id", String(128)),  # NULL: uploaded, of no run
    Column("rank", BigInteger),
    Column("stream", String(128)),  # uid of the one that it comes on
    Column("device", BigInteger),
    Column("step", BigInteger),
    Column("taken_ns", BigInteger, nullable=False),
    Column("received_ns", BigInteger, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("stacks", Boolean, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("issued_by", Text, nullable=False),
    Column("steps", Text, nullable=False),  # JSON list of [step, time_us]
    Column("raw_bytes", BigInteger, nullable=False),
    Column("wire_bytes", BigInteger, nullable=False),
    Column("received_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("state", String(16), nullable=False),  # receiving, complete or failed
    Column("reason", Text, nullable=False),
    Index("snapshots_run", "run_id", "taken_ns"),
)

snapshot_parts: Final = Table(
    "snapshot_parts",
    metadata,
    Column("snapshot_id", String(128), primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

ooms: Final = Table(
    "ooms",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("run_id", String(128), nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("time_ns", BigInteger, nullable=False),
    Column("received_ns", BigInteger, nullable=False),
    Column("linked_to", String(128), nullable=False),  # of the rank that ran out; empty: this one
    Column("is_fatal", Boolean, nullable=False),
    Column("recovered_step", BigInteger),
    Column("message", Text, nullable=False),
    Column("raw_bytes", BigInteger, nullable=False),
    Column("shown", Text, nullable=False),  # JSON object: what lists show of it besides
    Column("body", LargeBinary, nullable=False),  # the report, deflated
    Index("ooms_run", "run_id", "time_ns"),
)

policies: Final = Table(
    "policies",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("definition", Text, nullable=False),  # JSON object, as the API has it
    Column("is_on", Boolean, nullable=False),
    Column("off_reason", Text, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("fired", BigInteger, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
    Column("changed_by", Text, nullable=False),
)

policy_firings: Final = Table(
    "policy_firings",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("policy_id", String(64), nullable=False),
    Column("run_id", String(128), nullable=False),
    Column("run_name", Text, nullable=False),
    Column("time_ns", BigInteger, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("ranks", Text, nullable=False),  # JSON list
    Column("why", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("params", Text, nullable=False),  # JSON object
    Column("command_id", String(128)),  # NULL: nothing was sent
    Column("state", String(16), nullable=False),
    Column("result", Text, nullable=False),
    Index("policy_firings_policy", "policy_id", "id"),
    Index("policy_firings_state", "state"),
)
