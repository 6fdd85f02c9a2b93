from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, update

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
from vramscope_protocol.messages import CommandUpdate, Event
from vramscope_server.rows import ColumnLayout
from vramscope_server.store import tables
from vramscope_server.store.commit import StreamConflict, write_streams
from vramscope_server.store.field_tables import FieldTables
from vramscope_server.store.store import Store
from vramscope_server.store.stream_state import StreamState, load_stream

LAYOUT = ColumnLayout(FIELDS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def state_of(store: Store, uid: str, rank: int) -> StreamState:
    register_stream(store, registration(uid, rank=rank))
    state = store.read_now(lambda c: load_stream(c, uid))
    assert state is not None
    return state


def event_count(store: Store) -> int:
    query = select(func.count()).select_from(tables.events)
    return store.read_now(lambda c: c.execute(query).scalar_one())


def test_several_streams_in_one_transaction(store: Store) -> None:
    states = [state_of(store, f"s{rank}", rank) for rank in range(3)]
    for state in states:
        for batch in made_batches(made_columns(700, seed=state.rank), rows=50):
            state.absorb(submission_of(state.uid, batch, LAYOUT))
        state.prepare()
    store.write_now(lambda c: write_streams(c, states, FieldTables()))
    for rank in range(3):
        series = store.series("run-a", rank, ["step"], points=1000)
        assert series.time_ns.tolist() == made_columns(700, seed=rank)["time_ns"].tolist()
    seqs = store.read_now(lambda c: c.scalars(select(tables.streams.c.last_seq)).all())
    assert seqs == [14, 14, 14]


def test_nothing_is_written_of_a_stream_that_moved_on_elsewhere(store: Store) -> None:
    mine, moved = state_of(store, "s0", 0), state_of(store, "s1", 1)
    for state in (mine, moved):
        state.absorb(submission_of(state.uid, Event(1, START_NS, "mark"), LAYOUT))
    elsewhere = update(tables.streams).where(tables.streams.c.uid == "s1").values(last_seq=1)
    store.write_now(lambda c: c.execute(elsewhere).close())
    with pytest.raises(StreamConflict):
        store.write_now(lambda c: write_streams(c, [mine, moved], FieldTables()))
    assert event_count(store) == 0
    store.write_now(lambda c: write_streams(c, [mine], FieldTables()))
    assert event_count(store) == 1


def test_nothing_to_write(store: Store) -> None:
    store.write_now(lambda c: write_streams(c, [], FieldTables()))


def test_a_second_attempt_writes_the_same(store: Store) -> None:
    state = state_of(store, "s0", 0)
    for batch in made_batches(made_columns(900), rows=50):
        state.absorb(submission_of("s0", batch, LAYOUT))
    state.prepare()

    def write_then_fail() -> None:
        def write(connection: Connection) -> None:
            write_streams(connection, [state], FieldTables())
            raise LookupError

        store.write_now(write)

    with pytest.raises(LookupError):
        write_then_fail()
    state.prepare()
    store.write_now(lambda c: write_streams(c, [state], FieldTables()))
    series = store.series("run-a", 0, ["step"], points=1000)
    assert series.time_ns.tolist() == made_columns(900)["time_ns"].tolist()


def test_a_step_that_is_over_is_not_kept_as_the_last_word_on_a_command(store: Store) -> None:
    state = state_of(store, "s0", 0)
    words = [
        CommandUpdate(1, "c1", "refused", 5, Receipt("refused"), at_step=7),
        CommandUpdate(2, "c1", "prepared", 6, at_step=11),
    ]
    for word in words:
        state.absorb(submission_of("s0", word, LAYOUT))
        state.prepare()
        store.write_now(lambda c: write_streams(c, [state], FieldTables()))
        state.committed()
    kept = store.read_now(lambda c: c.execute(select(tables.receipts.c.state)).scalars().all())
    assert kept == ["prepared"]
