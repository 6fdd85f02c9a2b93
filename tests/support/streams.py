"""Streams of made-up rows: as arrays, as batches on the wire, and in a store."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_protocol.columns import UNKNOWN, encode_columns
from vramscope_protocol.messages import (
    Batch,
    BatchKind,
    CommandUpdate,
    Event,
    Field,
    Goodbye,
    Lost,
    RankInfo,
    Register,
    RunInfo,
)
from vramscope_server.rows import ColumnLayout, Rows
from vramscope_server.store import runs
from vramscope_server.store.database import sqlite_url
from vramscope_server.store.store import Store
from vramscope_server.store.submission import Submission

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
FIELDS = [
    Field("time_ns", "q", "ns"),
    Field("step", "q"),
    Field("reserved_bytes.all.current", "q", "B"),
    Field("device.used_bytes", "q", "B"),
    Field("loss", "f"),
    Field("share", "d"),
]
DTYPES = {"q": np.int64, "d": np.float64, "f": np.float32}

Columns = dict[str, NDArray[Any]]


def made_columns(
    count: int,
    *,
    seed: int = 0,
    rate_hz: float = 10.0,
    start_ns: int = START_NS,
    unknown_share: float = 0.05,
) -> Columns:
    """Columns of :data:`FIELDS`: walking bytes, some of them unknown, and noisy floats."""
    random = np.random.default_rng(seed)
    spread = int(SECOND_NS / rate_hz)
    times = start_ns + np.arange(count) * spread + random.integers(0, max(1, spread // 4), count)
    walk = 2**30 + 512 * np.cumsum(random.integers(-1000, 1001, (2, count)), axis=1)
    walk[random.random(walk.shape) < unknown_share] = UNKNOWN
    floats = random.normal(size=(2, count))
    floats[random.random(floats.shape) < unknown_share] = np.nan
    return {
        "time_ns": times.astype(np.int64),
        "step": (np.arange(count) // 3).astype(np.int64),
        "reserved_bytes.all.current": walk[0],
        "device.used_bytes": walk[1],
        "loss": floats[0].astype(np.float32),
        "share": floats[1],
    }


def wire_body(columns: Mapping[str, NDArray[Any]], fields: Sequence[Field], part: slice) -> bytes:
    """Rows as an agent sends them."""
    return encode_columns(array(field.code, columns[field.name][part].tolist()) for field in fields)


def made_batches(
    columns: Mapping[str, NDArray[Any]],
    *,
    rows: int = 10,
    kind: BatchKind = "sample",
    fields: Sequence[Field] = FIELDS,
    first_seq: int = 1,
    first_index: int = 0,
) -> Iterator[Batch]:
    """The columns as batches, numbered one after the other."""
    count = len(columns["time_ns"])
    for number, start in enumerate(range(0, count, rows)):
        stop = min(count, start + rows)
        yield Batch(
            first_seq + number,
            kind,
            1,
            first_index + start,
            stop - start,
            wire_body(columns, fields, slice(start, stop)),
        )


def made_rows(
    columns: Mapping[str, NDArray[Any]],
    *,
    kind: BatchKind = "sample",
    fields: Sequence[Field] = FIELDS,
    first_index: int = 0,
) -> Rows:
    """All of the columns as rows in memory."""
    count = len(columns["time_ns"])
    body = wire_body(columns, fields, slice(0, count))
    return Rows.from_batch(kind, first_index, ColumnLayout(fields), count, body)


def submission_of(
    stream: str, message: Batch | Event | CommandUpdate | Goodbye, layout: ColumnLayout
) -> Submission:
    """What ingest makes of a durable message."""
    content: Rows | Event | CommandUpdate | Goodbye | Lost
    if isinstance(message, Batch):
        content = Rows.from_batch(
            message.kind, message.first_index, layout, message.count, message.columns
        )
    else:
        content = message
    return Submission(stream, message.seq, content, START_NS, 1000)


def registration(
    stream: str = "stream-a", run: str = "run-a", rank: int = 0, name: str = "training"
) -> Register:
    """A register message."""
    return Register(
        stream,
        RunInfo(run, name, world_size=2),
        RankInfo(rank, "host-a", 4321, started_ns=START_NS),
    )


def open_store(folder: Path) -> Store:
    """A store in a file of its own."""
    return Store.open(sqlite_url(folder / "vramscope.db"))


def register_stream(store: Store, message: Register | None = None) -> runs.StreamRecord:
    """Register a stream in a store."""
    return store.write_now(
        lambda connection: runs.register(connection, message or registration(), START_NS)
    )
