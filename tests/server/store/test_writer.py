from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from tests.support.commits import WAIT_S, Commits
from tests.support.streams import (
    FIELDS,
    START_NS,
    made_batches,
    made_columns,
    open_store,
    register_stream,
    registration,
    submission_of,
)
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Batch, CommandUpdate, Event, Goodbye, Lost, Register
from vramscope_server.rows import ColumnLayout
from vramscope_server.store import command_log, events, runs, tables
from vramscope_server.store.store import Store
from vramscope_server.store.submission import Submission
from vramscope_server.store.writer import WriterLimits

LAYOUT = ColumnLayout(FIELDS)
QUICK = WriterLimits(commit_interval_s=0.02, retry_s=0.02)


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def store(tmp_path: Path, commits: Commits) -> Iterator[Store]:
    store = open_store(tmp_path)
    store.start(commits.on_commit, commits.on_stream_failed, QUICK)
    yield store
    store.close()


def submit(store: Store, *messages: Batch | Event | CommandUpdate | Goodbye) -> None:
    for message in messages:
        assert store.submit(submission_of("stream-a", message, LAYOUT))


def stored_times(store: Store) -> list[int]:
    times: list[int] = store.series("run-a", 0, ["step"], points=10**6).time_ns.tolist()
    return times


def row_count(store: Store, table: Any) -> int:
    return store.read_now(lambda c: c.scalar(select(func.count()).select_from(table)) or 0)


def test_every_row_is_stored_before_its_ack(store: Store, commits: Commits) -> None:
    register_stream(store)
    columns = made_columns(1500)
    submit(store, *made_batches(columns))
    commits.wait_for_ack("stream-a", 150)
    assert stored_times(store) == columns["time_ns"].tolist()
    assert row_count(store, tables.chunks) == 2  # the minutes that ended; the rest is open
    assert all(list(acks) == ["stream-a"] for acks in commits.history)
    seqs = [acks["stream-a"] for acks in commits.history]
    assert seqs == sorted(set(seqs))  # cumulative, one a commit


def test_what_comes_again_is_acked_and_not_stored_again(store: Store, commits: Commits) -> None:
    register_stream(store)
    columns = made_columns(300)
    batches = list(made_batches(columns))
    submit(store, *batches, *batches[10:], Event(31, START_NS, "mark"))
    commits.wait_for_ack("stream-a", 31)
    submit(store, *batches, Event(31, START_NS, "mark"), Event(32, START_NS, "mark"))
    commits.wait_for_ack("stream-a", 32)
    assert stored_times(store) == columns["time_ns"].tolist()
    assert len(store.read_now(lambda c: events.list_events(c, "run-a"))) == 2


def test_a_restart_goes_on_with_the_open_chunk(store: Store, commits: Commits) -> None:
    register_stream(store)
    columns = made_columns(1000)
    batches = list(made_batches(columns))
    submit(store, *batches[:37])
    commits.wait_for_ack("stream-a", 37)
    assert store.stop()
    store.start(commits.on_commit, commits.on_stream_failed, QUICK)
    submit(store, *batches[30:])
    commits.wait_for_ack("stream-a", 100)
    submit(store, Goodbye(101, START_NS, "exit", 0))
    commits.wait_for_ack("stream-a", 101)
    assert stored_times(store) == columns["time_ns"].tolist()
    assert row_count(store, tables.heads) == 0
    counts = store.read_now(lambda c: c.scalars(select(tables.chunks.c.row_count)).all())
    assert sorted(counts) == [400, 600]  # by the minute, and none cut short by the restart
    (record,) = store.read_now(lambda c: runs.load_runs(c, 10))
    assert record.streams[0].end_reason == "exit"
    assert record.streams[0].exit_code == 0
    assert record.streams[0].summary.samples.received == 1000


def test_stop_commits_what_was_submitted(store: Store, commits: Commits) -> None:
    register_stream(store)
    columns = made_columns(200)
    submit(store, *made_batches(columns))
    assert store.stop()
    assert commits.acks == {"stream-a": 20}
    assert stored_times(store) == columns["time_ns"].tolist()
    assert not store.submit(submission_of("stream-a", Event(21, START_NS, "late"), LAYOUT))


def test_a_goodbye_is_committed_at_once(tmp_path: Path, commits: Commits) -> None:
    store = open_store(tmp_path)
    # Nothing but the goodbye can end the wait: the job must not stand still for it at its exit.
    store.start(commits.on_commit, commits.on_stream_failed, WriterLimits(commit_interval_s=600.0))
    register_stream(store)
    batches = list(made_batches(made_columns(20)))
    submit(store, *batches, Goodbye(len(batches) + 1, START_NS, "exit", 0))
    commits.wait_for_ack("stream-a", len(batches) + 1)
    assert len(stored_times(store)) == 20
    store.close()


def test_a_locked_database_is_retried_and_not_acked(
    tmp_path: Path, store: Store, commits: Commits
) -> None:
    register_stream(store)
    make_impatient(store)
    blocker = sqlite3.connect(tmp_path / "vramscope.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    columns = made_columns(50)
    submit(store, *made_batches(columns))
    wait_until_unhealthy(store)
    assert commits.history == []
    assert "does not accept writes" in store.health().error
    assert store.health().pending_messages == 5
    blocker.execute("ROLLBACK")
    blocker.close()
    commits.wait_for_ack("stream-a", 5)
    assert stored_times(store) == columns["time_ns"].tolist()
    health = store.health()
    assert (health.ok, health.pending_messages, health.pending_bytes) == (True, 0, 0)


def make_impatient(store: Store) -> None:
    """Let the writer's connection give up on a lock after 10 ms instead of 5 s."""
    store.write_now(lambda c: c.exec_driver_sql("PRAGMA busy_timeout=10").close())


def wait_until_unhealthy(store: Store) -> None:
    waiter = threading.Event()
    for _ in range(int(WAIT_S / 0.01)):
        if not store.health().ok:
            return
        waiter.wait(0.01)
    raise AssertionError("expected the store to say that it does not work")


def test_a_full_queue_refuses_and_says_when_there_is_space(
    tmp_path: Path, commits: Commits
) -> None:
    store = open_store(tmp_path)
    limits = WriterLimits(commit_interval_s=0.02, queue_messages=2)
    register_stream(store)
    store.start(commits.on_commit, commits.on_stream_failed, limits)
    gate, entered = threading.Event(), threading.Event()

    def hold(_connection: Connection) -> None:
        entered.set()
        gate.wait(WAIT_S)

    holder = threading.Thread(target=lambda: store.write_now(hold))
    holder.start()
    assert entered.wait(WAIT_S)
    batches = [submission_of("stream-a", b, LAYOUT) for b in made_batches(made_columns(30))]
    assert [store.submit(item) for item in batches] == [True, True, False]
    space = threading.Event()
    store.when_space(space.set)
    assert not space.is_set()
    gate.set()
    assert space.wait(WAIT_S)
    assert store.submit(batches[2])
    commits.wait_for_ack("stream-a", 3)
    holder.join()
    store.close()


def test_one_stream_that_cannot_be_stored_does_not_stop_the_others(
    store: Store, commits: Commits
) -> None:
    register_stream(store)
    register_stream(store, registration("stream-b", rank=1))
    # Beyond what a database can hold; ingest refuses it, the writer survives it all the same.
    bad = Event(1, 2**70, "mark")
    assert store.submit(submission_of("stream-b", bad, LAYOUT))
    submit(store, *made_batches(made_columns(20)))
    commits.wait_for_ack("stream-a", 2)
    assert "OverflowError" in commits.wait_for_failure("stream-b")
    assert "stream-b" not in commits.acks
    # What the same connection sends after that was never preceded by what was lost.
    assert store.submit(submission_of("stream-b", Event(2, START_NS, "orphan"), LAYOUT))
    epoch = reregister(store, registration("stream-b", rank=1))
    good = submission_of("stream-b", Event(1, START_NS, "mark"), LAYOUT)
    assert store.submit(replace(good, epoch=epoch))
    commits.wait_for_ack("stream-b", 1)
    kinds = [event["kind"] for event in store.read_now(lambda c: events.list_events(c, "run-a"))]
    assert kinds == ["mark"]


def reregister(store: Store, message: Register) -> int:
    return asyncio.run(store.register(message, START_NS)).epoch


def test_a_stream_that_another_server_took_over_is_given_up(
    tmp_path: Path, store: Store, commits: Commits
) -> None:
    register_stream(store)
    batches = list(made_batches(made_columns(40)))
    submit(store, batches[0])
    commits.wait_for_ack("stream-a", 1)
    other = open_store(tmp_path)
    theirs = Commits()
    other.start(theirs.on_commit, theirs.on_stream_failed, QUICK)
    assert other.submit(submission_of("stream-a", batches[1], LAYOUT))
    theirs.wait_for_ack("stream-a", 2)
    submit(store, batches[1], batches[2])
    commits.wait_for_failure("stream-a")
    epoch = reregister(store, registration())
    for batch in batches:
        assert store.submit(replace(submission_of("stream-a", batch, LAYOUT), epoch=epoch))
    commits.wait_for_ack("stream-a", 4)
    assert len(stored_times(store)) == 40
    other.close()


def test_a_call_is_committed_when_it_returns_and_rolled_back_when_it_raises(store: Store) -> None:
    def insert_then_fail(connection: Connection) -> None:
        events.add_event(connection, "run-a", None, START_NS, "half")
        raise LookupError("no")

    store.write_now(lambda c: events.add_event(c, "run-a", None, START_NS, "whole"))
    with pytest.raises(LookupError):
        store.write_now(insert_then_fail)
    kinds = [event["kind"] for event in store.read_now(lambda c: events.list_events(c, "run-a"))]
    assert kinds == ["whole"]


def test_receipts_are_stored_and_a_final_one_stays(store: Store, commits: Commits) -> None:
    register_stream(store)
    command = {
        "id": "c1", "name": "stats", "params": {}, "dry_run": False, "ranks": [0],
        "state": "queued", "issued_by": "me", "origin": "api",
        "created_ns": START_NS, "deadline_ns": START_NS + 1,
    }  # fmt: skip
    store.write_now(lambda c: command_log.insert_command(c, "run-a", command))
    submit(
        store,
        CommandUpdate(1, "c1", "running", START_NS),
        CommandUpdate(2, "c1", "done", START_NS + 1, Receipt("done", returned_bytes=512)),
        CommandUpdate(3, "c1", "running", START_NS + 2),
    )
    commits.wait_for_ack("stream-a", 3)
    stored = store.read_now(lambda c: command_log.get_command(c, "c1"))
    assert stored is not None
    receipt = stored["receipts"]["0"]
    assert (receipt["state"], receipt["returned_bytes"]) == ("done", 512)


def test_losses_are_stored_without_an_ack(store: Store, commits: Commits) -> None:
    register_stream(store)
    store.submit(Submission("stream-a", 0, Lost(samples={"outbox full": 7}), START_NS, 10))
    submit(store, Event(1, START_NS, "mark"))
    commits.wait_for_ack("stream-a", 1)
    (record,) = store.read_now(lambda c: runs.load_runs(c, 10))
    assert record.streams[0].summary.samples.lost_by_reason() == {"outbox full": 7}


def test_an_idle_stream_is_sealed_and_can_go_on(tmp_path: Path, commits: Commits) -> None:
    store = open_store(tmp_path)
    register_stream(store)
    limits = WriterLimits(commit_interval_s=0.01, idle_seal_s=0.05)
    store.start(commits.on_commit, commits.on_stream_failed, limits)
    columns = made_columns(60)
    batches = list(made_batches(columns))
    submit(store, *batches[:3])
    waiter = threading.Event()
    for _ in range(int(WAIT_S / 0.01)):
        if row_count(store, tables.chunks):
            break
        waiter.wait(0.01)
    assert row_count(store, tables.heads) == 0
    submit(store, *batches[3:])
    commits.wait_for_ack("stream-a", 6)
    assert stored_times(store) == columns["time_ns"].tolist()
    store.close()


def test_a_stream_that_never_registered_is_not_acked(store: Store, commits: Commits) -> None:
    register_stream(store)
    assert store.submit(submission_of("nobody", Event(1, START_NS, "mark"), LAYOUT))
    submit(store, Event(1, START_NS, "mark"))
    commits.wait_for_ack("stream-a", 1)
    assert "nobody" not in commits.acks


def test_health_says_when_the_writer_is_not_running(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert not store.health().ok
    store.close()


def test_writer_stops_in_time_when_the_database_never_accepts(
    tmp_path: Path, commits: Commits
) -> None:
    store = open_store(tmp_path)
    register_stream(store)
    store.start(commits.on_commit, commits.on_stream_failed, QUICK)
    make_impatient(store)
    blocker = sqlite3.connect(tmp_path / "vramscope.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    submit(store, *made_batches(made_columns(10)))
    assert not store.stop(timeout_s=0.2)
    blocker.close()
    store.close()
    assert commits.acks == {}
