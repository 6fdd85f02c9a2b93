from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tests.support.commits import WAIT_S, Commits
from tests.support.streams import START_NS, open_store, register_stream, registration
from vramscope_server.store import events
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store


def add(connection: Connection) -> None:
    events.add_event(connection, "run-a", 0, START_NS, "mark")


def count(connection: Connection) -> int:
    return len(events.list_events(connection, "run-a"))


def test_writes_work_before_during_and_after_the_writer(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    threads: set[str] = set()

    def write(connection: Connection) -> None:
        threads.add(threading.current_thread().name)
        add(connection)

    async def through_the_loop() -> int:
        await store.write(write)
        return await store.read(count)

    store.write_now(write)
    assert asyncio.run(through_the_loop()) == 2
    threads.clear()
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed)
    store.write_now(write)
    assert asyncio.run(through_the_loop()) == 4
    assert threads == {"vramscope-writer"}
    assert store.health().ok
    store.stop()
    store.write_now(write)
    assert store.read_now(count) == 5
    store.close()


@pytest.mark.parametrize("started", [True, False])
def test_sql_that_fails_is_a_store_error(tmp_path: Path, started: bool) -> None:
    store = open_store(tmp_path)
    if started:
        store.start(Commits().on_commit, Commits().on_stream_failed)

    def wrong(connection: Connection) -> None:
        connection.execute(text("INSERT INTO nowhere VALUES (1)"))

    def wrong_later() -> None:
        asyncio.run(store.write(wrong))

    def wrong_now() -> None:
        store.write_now(wrong)

    for write in (wrong_now, wrong_later):
        with pytest.raises(StoreError, match="did not take a write: no such table") as caught:
            write()
        assert "INSERT" not in caught.value.message  # it travels to whoever asked
    store.close()


def test_a_second_server_of_one_file_says_so_and_leaves_what_is_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = (open_store(tmp_path) for _ in range(3))
    for store in (first, second):
        store.start(Commits().on_commit, Commits().on_stream_failed)
    assert (first.is_sole, second.is_sole) == (True, False)
    assert "another server uses sqlite:///" in caplog.text
    for store in (first, second):
        store.close()
    third.start(Commits().on_commit, Commits().on_stream_failed)
    assert third.is_sole
    third.close()


def test_every_registration_gets_an_epoch_of_its_own(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed)
    epochs = [asyncio.run(store.register(registration(), START_NS)).epoch for _ in range(3)]
    assert epochs == sorted(set(epochs))
    assert epochs[0] > 0
    store.close()


def test_what_takes_long_holds_up_neither_the_loop_nor_the_quick_reads(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    register_stream(store)
    let_go = threading.Event()

    async def read() -> tuple[int, int]:
        long = [asyncio.ensure_future(store.compute(let_go.wait)) for _ in range(100)]
        await asyncio.wait_for(store.read(lambda connection: None), WAIT_S)
        assert not any(future.done() for future in long)
        let_go.set()
        assert all(await asyncio.gather(*long))
        series = await store.compute(lambda: store.series("run-a", 0, ["step"]))
        steps = await store.compute(lambda: store.steps("run-a", 0))
        return len(series.time_ns), len(steps.step)

    assert asyncio.run(read()) == (0, 0)
    store.close()


def test_a_store_that_does_not_write_says_so(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path)
    assert not store.is_writing
    called = threading.Event()
    store.when_space(called.set)
    assert called.is_set()
    assert store.stop()
    store.close()
