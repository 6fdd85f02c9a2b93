from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, Executable, select, update

from tests.support.streams import START_NS, open_store, register_stream, registration
from vramscope_protocol.errors import FORBIDDEN, ProtocolError
from vramscope_protocol.messages import Register
from vramscope_server.store import runs, tables
from vramscope_server.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def test_registering_again_changes_nothing_but_what_the_rank_says(store: Store) -> None:
    first = register_stream(store)
    again = registration()
    again.rank.commands = ["stats"]
    again.rank.started_ns += 5
    second = register_stream(store, again)
    assert (second.stream_id, second.uid, second.last_seq) == (first.stream_id, first.uid, 0)
    assert second.info.commands == ["stats"]
    (record,) = store.read_now(lambda c: runs.load_runs(c, 10))
    assert record.started_ns == START_NS
    assert len(record.streams) == 1


def test_a_new_life_of_a_rank_counts_as_a_restart(store: Store) -> None:
    first = register_stream(store, registration("stream-a"))
    second = register_stream(store, registration("stream-b"))
    register_stream(store, registration("stream-a"))  # the old life delivers what it has left
    row = store.read_now(lambda c: c.execute(select(tables.ranks)).one())
    assert (row.stream_id, row.restarts) == (second.stream_id, 1)
    ids = store.read_now(lambda c: runs.stream_ids(c, "run-a", 0))
    assert ids == [first.stream_id, second.stream_id]


def test_when_each_rank_was_heard_of_last_is_that_of_its_newest_life(store: Store) -> None:
    for stream, rank in (("stream-a", 0), ("stream-b", 0), ("stream-c", 1)):
        register_stream(store, registration(stream, rank=rank))
    table = tables.streams
    for stream, seen_ns in (("stream-a", 9), ("stream-b", 7)):
        ended = update(table).where(table.c.uid == stream)
        store.write_now(partial(execute, ended.values(last_seen_ns=seen_ns, ended_ns=seen_ns)))
    assert store.read_now(lambda c: runs.ranks_seen(c, "run-a")) == {
        0: runs.RankSeen(7, 7),
        1: runs.RankSeen(START_NS, None),
    }


def test_a_run_has_no_more_ranks_than_a_server_can_serve(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MAX_RANKS", 2)
    for stream, rank in (("stream-a", 0), ("stream-b", 7)):
        register_stream(store, registration(stream, rank=rank))
    with pytest.raises(ProtocolError, match="at most 2 ranks") as refused:
        register_stream(store, registration("stream-c", rank=1))
    assert refused.value.code == FORBIDDEN
    register_stream(store, registration("stream-d", rank=7))  # another life of one
    register_stream(store, registration("stream-c", run="run-b", rank=1))


@pytest.mark.parametrize("other", [registration(rank=1), registration(run="run-b")])
def test_a_stream_belongs_to_one_rank_of_one_run(store: Store, other: Register) -> None:
    register_stream(store)
    with pytest.raises(ProtocolError, match="which is not one of rank"):
        register_stream(store, other)
    assert len(store.read_now(lambda c: runs.load_runs(c, 10))) == 1  # rolled back as a whole


def execute(statement: Executable, connection: Connection) -> None:
    connection.execute(statement)


def test_the_runs_seen_last_are_loaded(store: Store) -> None:
    for number in range(5):
        register_stream(store, registration(f"s{number}", f"run-{number}"))
        seen = update(tables.streams).where(tables.streams.c.uid == f"s{number}")
        statement = seen.values(last_seen_ns=100 - number)
        store.write_now(partial(execute, statement))
    loaded = store.read_now(lambda c: runs.load_runs(c, 2))
    assert {record.info.id for record in loaded} == {"run-0", "run-1"}
    assert [stream.uid for record in loaded for stream in record.streams] == ["s0", "s1"]
