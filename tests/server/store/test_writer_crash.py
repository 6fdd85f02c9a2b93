"""A server killed with SIGKILL in the middle of writing, as often as it likes to be."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.commits import Commits
from tests.support.streams import (
    FIELDS,
    made_batches,
    made_columns,
    open_store,
    register_stream,
    submission_of,
)
from vramscope_server.rows import ColumnLayout

BATCHES = 400
CHILD = """
import json, sys, threading
from pathlib import Path
from tests.support.streams import *
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.writer import WriterLimits

ahead = threading.Semaphore(8)  # batches that may be under way when the kill comes
committed = 0

def on_commit(acks):
    global committed
    ahead.release(acks["stream-a"] - committed)
    committed = acks["stream-a"]
    sys.stdout.write(json.dumps(acks) + "\\n")
    sys.stdout.flush()

store = open_store(Path(sys.argv[1]))
columns = made_columns(4000)
store.start(on_commit, print, WriterLimits(commit_interval_s=0.005))
last_seq = register_stream(store).last_seq
committed = last_seq
print(json.dumps({"resumed": last_seq}), flush=True)
layout = ColumnLayout(FIELDS)
for batch in made_batches(columns):
    if batch.seq > last_seq:
        ahead.acquire()
        assert store.submit(submission_of("stream-a", batch, layout))
store.stop()
"""


def run_child(folder: Path, kill_at_seq: int | None) -> tuple[int, int]:
    """Run the child; returns the sequence number it resumed after, and the last one acked."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    assert child.stdout is not None
    resumed = acked = 0
    with child, child.stdout as lines:
        for line in lines:
            said = json.loads(line)
            resumed = said.get("resumed", resumed)
            acked = max(acked, said.get("stream-a", 0))
            if kill_at_seq is not None and acked >= kill_at_seq:
                os.kill(child.pid, signal.SIGKILL)
                break
    assert child.returncode == (0 if kill_at_seq is None else -signal.SIGKILL)
    return resumed, acked


@pytest.mark.timeout(120)
def test_every_row_is_stored_exactly_once_however_often_the_server_is_killed(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    acked = 0
    for _ in range(4):
        resumed, now_acked = run_child(tmp_path, acked + chance.randint(1, 60))
        assert resumed >= acked  # what was acked is still there
        acked = max(acked, now_acked)
    resumed, now_acked = run_child(tmp_path, None)
    assert resumed >= acked
    assert now_acked == BATCHES

    store = open_store(tmp_path)
    columns = made_columns(4000)
    names = [field.name for field in FIELDS if field.name != "time_ns"]
    series = store.series("run-a", 0, names, points=10**6)
    assert series.time_ns.tolist() == columns["time_ns"].tolist()
    for name in names:
        np.testing.assert_array_equal(series.columns[name].maximum, columns[name])
    store.close()


def test_open_chunks_are_rebuilt_even_if_nothing_more_comes(tmp_path: Path) -> None:
    run_child(tmp_path, 3)
    store = open_store(tmp_path)
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed)
    stored = store.series("run-a", 0, ["step"], points=10**6)
    assert stored.time_ns.tolist() == made_columns(4000)["time_ns"][: len(stored.time_ns)].tolist()
    assert len(stored.time_ns) >= 30
    last_seq = register_stream(store).last_seq
    assert len(stored.time_ns) == last_seq * 10
    rest = [batch for batch in made_batches(made_columns(4000)) if batch.seq > last_seq]
    assert store.submit(submission_of("stream-a", rest[0], ColumnLayout(FIELDS)))
    commits.wait_for_ack("stream-a", rest[0].seq)
    store.close()
