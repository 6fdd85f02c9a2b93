"""A run of made-up but realistic samples, for the store's benchmarks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import Field, RankInfo, Register, RunInfo
from vramscope_server.rows import ColumnLayout, Rows
from vramscope_server.store import runs
from vramscope_server.store.database import sqlite_url
from vramscope_server.store.store import Store

START_NS: Final = 1_700_000_040_000_000_000
RATE_HZ: Final = 10
FIELDS: Final = [
    Field("time_ns", "q", "ns"),
    Field("step", "q"),
    *(Field(f"allocator_{number}_bytes", "q", "B") for number in range(12)),
    *(Field(f"device_{number}", "q") for number in range(8)),
    *(Field(f"host_{number}", "q") for number in range(10)),
    *(Field(f"timing_{number}_us", "q", "us") for number in range(6)),
    Field("loss", "f"),
    Field("gradient_norm", "f"),
]


def made_samples(count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """One rank's columns: walking bytes in units of 512, gauges that mostly sit, timings."""
    random = np.random.default_rng(seed)
    jitter = random.integers(0, 2_000_000, count)
    columns: dict[str, NDArray[Any]] = {
        "time_ns": START_NS + np.arange(count) * (1_000_000_000 // RATE_HZ) + jitter,
        "step": np.arange(count) // 3,
    }
    for field in FIELDS[2:]:
        if field.code == "f":
            columns[field.name] = random.normal(2.0, 0.1, count).astype(np.float32)
        elif field.unit == "us":
            columns[field.name] = random.integers(80_000, 120_000, count)
        elif field.unit == "B":
            moves = random.integers(-2000, 2001, count) * (random.random(count) < 0.7)
            columns[field.name] = 2**33 + 512 * np.cumsum(moves)
        else:
            columns[field.name] = 1000 + np.cumsum(
                random.integers(-2, 3, count) * (random.random(count) < 0.2)
            )
    return columns


def batches(columns: dict[str, NDArray[Any]], rows: int) -> Iterator[bytes]:
    """Batch bodies as an agent sends them."""
    for start in range(0, len(columns["time_ns"]), rows):
        part = slice(start, start + rows)
        yield encode_columns(
            array(field.code, columns[field.name][part].tolist()) for field in FIELDS
        )


def open_store(folder: Path) -> Store:
    """An empty store."""
    return Store.open(sqlite_url(folder / "vramscope.db"))


def register_rank(store: Store, rank: int) -> str:
    """Register a rank; returns its stream."""
    uid = f"stream-{rank}"
    message = Register(uid, RunInfo("benchmark", "benchmark"), RankInfo(rank, "host", 1))
    store.write_now(lambda connection: runs.register(connection, message, START_NS))
    return uid


def rows_of(body: bytes, first_index: int, count: int, layout: ColumnLayout) -> Rows:
    """What ingest makes of a batch body."""
    return Rows.from_batch("sample", first_index, layout, count, body)
