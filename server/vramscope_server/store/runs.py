"""Runs, ranks and streams in the database: registered by ingest, loaded when a server starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from vramscope_protocol.errors import BAD_MESSAGE, FORBIDDEN, ProtocolError
from vramscope_protocol.messages import RankInfo, Register, RunInfo
from vramscope_server.registry.stream_summary import StreamSummary
from vramscope_server.store import tables
from vramscope_server.store.claims import Seat, claim_run, claim_seat, claim_stream
from vramscope_server.store.upsert import upsert

MAX_RANKS: Final = 4096
"""Of one run: as many as a server takes connections. An agent may claim to be any of them."""


@dataclass(slots=True)
class StreamRecord:
    """One life of one process, as stored."""

    uid: str
    stream_id: int
    run_id: str
    info: RankInfo
    created_ns: int
    last_seq: int
    last_seen_ns: int
    summary: StreamSummary
    ended_ns: int | None = None
    end_reason: str | None = None
    end_text: str | None = None
    exit_code: int | None = None
    secret: str = ""
    """Hash of what its process, and those that it starts, know; empty: nobody asks for it."""
    owner: str = ""
    """Whose token it came with last. Not stored with the stream but with its run."""
    epoch: int = 0
    """Which registration this is; see :meth:`StreamStates.admit`. Not stored."""


@dataclass(slots=True)
class RunRecord:
    """One run with all its streams, oldest first."""

    info: RunInfo
    started_ns: int
    streams: list[StreamRecord]


def register(
    connection: Connection,
    message: Register,
    now_ns: int,
    owner: str = "",
    seat: Seat | None = None,
) -> StreamRecord:
    """Store run, rank and stream if they are new, and return what is known of the stream.

    Args:
        message: who registers.
        now_ns: the server's clock.
        owner: whose token it came with.
        seat: who sits on the rank now.

    Raises:
        ProtocolError: the stream belongs to another run or rank, or they to somebody else.
    """
    _store_run(connection, message, now_ns)
    claim_run(connection, message, owner)
    claim_seat(seat, message)
    table = tables.streams
    row = connection.execute(select(table).where(table.c.uid == message.stream)).one_or_none()
    info = msgspec.json.encode(message.rank).decode()
    if row is None:
        stream_id = connection.execute(
            insert(table)
            .values(
                uid=message.stream,
                run_id=message.run.id,
                rank=message.rank.rank,
                info=info,
                created_ns=now_ns,
                last_seq=0,
                last_seen_ns=now_ns,
                summary=msgspec.json.encode(StreamSummary()).decode(),
            )
            .returning(table.c.id)
        ).scalar_one()
    elif (row.run_id, row.rank) != (message.run.id, message.rank.rank):
        raise ProtocolError(
            BAD_MESSAGE,
            # Not whose it is: that may be no business of who asks.
            f"expected another stream than {message.stream}, which is not one of "
            f"rank {message.rank.rank} of run {message.run.id}",
        )
    else:
        stream_id = row.id
        connection.execute(update(table).where(table.c.id == stream_id).values(info=info))
    claim_stream(connection, message)
    _store_rank(connection, message, stream_id)
    record = _stream_record(connection.execute(select(table).where(table.c.id == stream_id)).one())
    record.owner = owner
    return record


def _store_run(connection: Connection, message: Register, now_ns: int) -> None:
    run = message.run
    row = {
        "id": run.id,
        "name": run.name,
        "world_size": run.world_size,
        "emulated": run.emulated,
        "user": run.user,
        "script": run.script,
        "started_ns": message.rank.started_ns or now_ns,
    }
    # Before anybody is asked whose it is: so only one of two that come at once is the first.
    upsert(connection, tables.runs, [row], keys=("id",), keep=("started_ns",))


def _store_rank(connection: Connection, message: Register, stream_id: int) -> None:
    """Point the rank at its newest life; an older one may still come back to deliver the rest."""
    table = tables.ranks
    of_rank = (table.c.run_id == message.run.id) & (table.c.rank == message.rank.rank)
    current = connection.scalar(select(table.c.stream_id).where(of_rank))
    if current is None:
        of_run = select(func.count()).where(table.c.run_id == message.run.id)
        if (connection.scalar(of_run) or 0) >= MAX_RANKS:
            raise ProtocolError(
                FORBIDDEN, f"expected at most {MAX_RANKS} ranks of run {message.run.id}"
            )
        connection.execute(
            insert(table).values(
                run_id=message.run.id, rank=message.rank.rank, stream_id=stream_id, restarts=0
            )
        )
    elif stream_id > current:
        connection.execute(
            update(table).where(of_rank).values(stream_id=stream_id, restarts=table.c.restarts + 1)
        )


def load_runs(connection: Connection, limit: int) -> list[RunRecord]:
    """The runs that were seen last, each with its streams; oldest first."""
    streams, runs = tables.streams, tables.runs
    newest = (
        select(streams.c.run_id, func.max(streams.c.last_seen_ns).label("seen_ns"))
        .group_by(streams.c.run_id)
        .order_by(func.max(streams.c.last_seen_ns).desc())
        .limit(limit)
        .subquery()
    )
    records: dict[str, RunRecord] = {}
    for row in connection.execute(
        select(runs).join(newest, newest.c.run_id == runs.c.id).order_by(runs.c.started_ns)
    ):
        info = RunInfo(row.id, row.name, row.world_size, row.emulated, row.user, row.script)
        records[row.id] = RunRecord(info, row.started_ns, [])
    for row in connection.execute(
        select(streams).join(newest, newest.c.run_id == streams.c.run_id).order_by(streams.c.id)
    ):
        records[row.run_id].streams.append(_stream_record(row))
    return list(records.values())


class RankSeen(NamedTuple):
    """When a rank was heard of last, by whichever server, and when it ended."""

    last_seen_ns: int
    ended_ns: int | None


def ranks_seen(connection: Connection, run_id: str) -> dict[int, RankSeen]:
    """The newest life of each rank of a run."""
    table = tables.streams
    query = select(table.c.rank, table.c.last_seen_ns, table.c.ended_ns)
    rows = connection.execute(query.where(table.c.run_id == run_id).order_by(table.c.id))
    return {row.rank: RankSeen(row.last_seen_ns, row.ended_ns) for row in rows}


def stream_ids(connection: Connection, run_id: str, rank: int) -> list[int]:
    """Numbers of all streams of a rank, oldest first."""
    table = tables.streams
    return list(
        connection.scalars(
            select(table.c.id)
            .where(table.c.run_id == run_id, table.c.rank == rank)
            .order_by(table.c.id)
        )
    )


def _stream_record(row: Row[tuple[object, ...]]) -> StreamRecord:
    return StreamRecord(
        uid=row.uid,
        stream_id=row.id,
        run_id=row.run_id,
        info=msgspec.json.decode(row.info, type=RankInfo),
        created_ns=row.created_ns,
        last_seq=row.last_seq,
        last_seen_ns=row.last_seen_ns,
        summary=msgspec.json.decode(row.summary, type=StreamSummary),
        ended_ns=row.ended_ns,
        end_reason=row.end_reason,
        end_text=row.end_text,
        exit_code=row.exit_code,
        secret=row.secret,
    )
