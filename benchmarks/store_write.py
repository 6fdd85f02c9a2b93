"""What storing a sample costs: the store's chunks against a row a sample, in one run.

    python benchmarks/store_write.py [--ranks 32] [--seconds 120]

Both sides write the same samples to SQLite (WAL, synchronous=NORMAL) and commit once per second
of samples. CPU time is of the whole process, so what other work does to the clock is left out;
figures are for comparison within one run.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.stored_run import (
    FIELDS,
    RATE_HZ,
    batches,
    made_samples,
    open_store,
    register_rank,
    rows_of,
)
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.submission import Submission
from vramscope_server.store.writer import Acks, WriterLimits

ROW_BYTES = 8 * len(FIELDS)


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def write_chunks(folder: Path, bodies: list[list[bytes]]) -> float:
    """CPU seconds of the whole path from batch body to ack."""
    store = open_store(folder)
    layout = ColumnLayout(FIELDS)
    uids = [register_rank(store, rank) for rank in range(len(bodies))]
    seconds = len(bodies[0])
    committed = threading.Semaphore(0)
    acked: dict[str, int] = {}

    def on_commit(acks: Acks) -> None:
        acked.update(acks)
        committed.release()

    def on_stream_failed(uid: str, reason: str) -> None:
        raise RuntimeError(f"{uid}: {reason}")

    # As many bytes as one second of all ranks brings: one commit a second of samples.
    second_bytes = sum(len(rank_bodies[0]) for rank_bodies in bodies)
    store.start(
        on_commit,
        on_stream_failed,
        WriterLimits(commit_interval_s=60.0, commit_bytes=second_bytes),
    )
    started = time.process_time()
    for second in range(seconds):
        for uid, rank_bodies in zip(uids, bodies, strict=True):
            body = rank_bodies[second]
            rows = rows_of(body, second * RATE_HZ, RATE_HZ, layout)
            if not store.submit(Submission(uid, second + 1, rows, 0, len(body))):
                raise RuntimeError("expected space in the writer's queue")
        committed.acquire()
    cpu_s = time.process_time() - started
    store.close()
    if set(acked.values()) != {seconds}:
        raise RuntimeError(f"expected every stream acked up to {seconds}, got {acked}")
    return cpu_s


def write_rows(folder: Path, bodies: list[list[bytes]]) -> float:
    """CPU seconds of a row a sample, committed every second."""
    connection = sqlite3.connect(folder / "rows.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    names = ", ".join(f"c{number}" for number in range(len(FIELDS)))
    connection.execute(f"CREATE TABLE samples (rank INTEGER, {names})")
    insert = f"INSERT INTO samples VALUES (?{', ?' * len(FIELDS)})"
    layout = ColumnLayout(FIELDS)
    started = time.process_time()
    for second in range(len(bodies[0])):
        connection.execute("BEGIN IMMEDIATE")
        for rank, rank_bodies in enumerate(bodies):
            rows = rows_of(rank_bodies[second], second * RATE_HZ, RATE_HZ, layout)
            columns = [rows.column_at(at).tolist() for at in range(len(FIELDS))]
            connection.executemany(insert, zip([rank] * RATE_HZ, *columns, strict=True))
        connection.execute("COMMIT")
    cpu_s = time.process_time() - started
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return cpu_s


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=180)
    options = parser.parse_args()
    ranks, seconds = options.ranks, options.seconds
    bodies = [
        list(batches(made_samples(seconds * RATE_HZ, seed), RATE_HZ)) for seed in range(ranks)
    ]
    samples = ranks * seconds * RATE_HZ
    figures: dict[str, tuple[float, float]] = {}
    for name, write in (("chunks", write_chunks), ("rows", write_rows)):
        with tempfile.TemporaryDirectory() as folder:
            cpu_s = write(Path(folder), bodies)
            figures[name] = cpu_s / samples * 1e6, stored_bytes(Path(folder)) / samples
    print(f"{samples} samples of {len(FIELDS)} fields ({ROW_BYTES} B), {ranks} ranks")
    for name, (cpu_us, size_bytes) in figures.items():
        print(f"{name:>7}: {cpu_us:6.2f} us CPU a sample, {size_bytes:6.1f} B a sample on disk")
    cpu_ratio = figures["rows"][0] / figures["chunks"][0]
    size_ratio = figures["rows"][1] / figures["chunks"][1]
    print(f"a row a sample costs {cpu_ratio:.1f} x the CPU and {size_ratio:.1f} x the disk")


if __name__ == "__main__":
    main()
