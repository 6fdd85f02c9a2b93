"""What reading a series costs: rollups and chunks against a row a sample, in one run.

    python benchmarks/store_read.py [--hours 6]

Reads one metric of one rank at several zooms, to 2,000 points each, and the whole span from a
table with a row a sample, by ``GROUP BY``. Times are wall clock with a warm page cache, median
of five; figures are for comparison within one run.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.stored_run import (
    FIELDS,
    RATE_HZ,
    START_NS,
    batches,
    made_samples,
    open_store,
    register_rank,
    rows_of,
)
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.store import Store
from vramscope_server.store.submission import Submission
from vramscope_server.store.writer import Acks

METRIC = "allocator_3_bytes"
POINTS = 2000
BATCH_ROWS = 300


def fill_store(store: Store, bodies: list[bytes], count: int) -> None:
    uid = register_rank(store, 0)
    layout = ColumnLayout(FIELDS)
    done = threading.Event()

    def on_commit(acks: Acks) -> None:
        if acks.get(uid) == len(bodies):
            done.set()

    def on_stream_failed(uid: str, reason: str) -> None:
        raise RuntimeError(f"{uid}: {reason}")

    store.start(on_commit, on_stream_failed)
    for number, body in enumerate(bodies):
        first = number * BATCH_ROWS
        rows = rows_of(body, first, min(BATCH_ROWS, count - first), layout)
        while not store.submit(Submission(uid, number + 1, rows, 0, len(body))):
            time.sleep(0.01)
    done.wait()
    store.stop()


def fill_rows(connection: sqlite3.Connection, bodies: list[bytes], count: int) -> None:
    names = ", ".join(field.name for field in FIELDS)
    connection.execute(f"CREATE TABLE samples (rank INTEGER, {names})")
    insert = f"INSERT INTO samples VALUES (0{', ?' * len(FIELDS)})"
    layout = ColumnLayout(FIELDS)
    with connection:
        for number, body in enumerate(bodies):
            first = number * BATCH_ROWS
            rows = rows_of(body, first, min(BATCH_ROWS, count - first), layout)
            columns = [rows.column_at(at).tolist() for at in range(len(FIELDS))]
            connection.executemany(insert, zip(*columns, strict=True))


def median_ms(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=6.0)
    hours = parser.parse_args().hours
    count = int(hours * 3600 * RATE_HZ)
    bodies = list(batches(made_samples(count), BATCH_ROWS))
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        fill_store(store, bodies, count)
        connection = sqlite3.connect(Path(folder) / "rows.db")
        fill_rows(connection, bodies, count)
        end_ns = START_NS + int(hours * 3600e9)
        print(f"{count} samples of {len(FIELDS)} fields, one metric to {POINTS} points")
        for name, span_s in (("2 min", 120), ("20 min", 1200), ("1 h", 3600), ("all", None)):
            start_ns = None if span_s is None else end_ns - span_s * 10**9
            series = store.series("benchmark", 0, [METRIC], start_ns, None, POINTS)
            took_ms = median_ms(
                partial(store.series, "benchmark", 0, [METRIC], start_ns, None, POINTS)
            )
            print(
                f"{name:>7}: {took_ms:8.2f} ms, {series.stored_rows:4d} stored rows read, "
                f"resolution {series.resolution_ms:g} ms"
            )
        width_ns = int(hours * 3600e9) // POINTS
        query = (
            f"SELECT min({METRIC}), max({METRIC}), avg({METRIC}) FROM samples "
            f"GROUP BY rank, time_ns / {width_ns}"
        )
        rows_ms = median_ms(lambda: connection.execute(query).fetchall())
        print(f"   rows: {rows_ms:8.2f} ms for all: {rows_ms / took_ms:.0f} x")
        connection.close()
        store.close()


if __name__ == "__main__":
    main()
