from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.streams import (
    FIELDS,
    START_NS,
    made_batches,
    made_columns,
    open_store,
    register_stream,
    submission_of,
)
from vramscope_protocol.messages import Event, Goodbye
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.database import Database, sqlite_url
from vramscope_server.store.stream_states import StreamStates

LAYOUT = ColumnLayout(FIELDS)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    store = open_store(tmp_path)
    register_stream(store)
    store.close()
    database = Database.open(sqlite_url(tmp_path / "vramscope.db"))
    yield database
    database.close()


def test_a_stream_is_loaded_when_it_is_written_to(database: Database) -> None:
    states = StreamStates(database, 60.0)
    states.absorb(submission_of("nobody", Event(1, START_NS, "mark"), LAYOUT))
    assert states.dirty() == []
    states.absorb(submission_of("stream-a", Event(4, START_NS, "mark"), LAYOUT))
    (state,) = states.dirty()
    states.note_committed(state)
    assert states.dirty() == []
    assert states.take_acks() == {"stream-a": 4}
    assert states.take_acks() == {}


def test_after_a_failure_only_a_later_registration_counts(database: Database) -> None:
    states = StreamStates(database, 60.0)
    old = states.admit()
    first = submission_of("stream-a", Event(1, START_NS, "mark"), LAYOUT)
    second = submission_of("stream-a", Event(2, START_NS, "mark"), LAYOUT)
    states.absorb(replace(first, epoch=old))
    assert not states.has_failed("stream-a", old)
    states.fail("stream-a")
    assert states.has_failed("stream-a", old)
    states.absorb(replace(second, epoch=old))  # was on its way when the first was lost
    assert states.dirty() == []
    new = states.admit()
    assert not states.has_failed("stream-a", new)
    states.absorb(replace(first, epoch=new))
    (state,) = states.dirty()
    assert state.last_seq == 1


def test_an_ended_stream_leaves_memory_once_it_is_committed(database: Database) -> None:
    states = StreamStates(database, 60.0)
    states.absorb(submission_of("stream-a", Goodbye(1, START_NS, "exit"), LAYOUT))
    (state,) = states.dirty()
    states.note_committed(state)
    assert states.take_acks() == {"stream-a": 1}
    states.absorb(submission_of("stream-a", Event(2, START_NS, "mark"), LAYOUT))
    assert states.dirty() != [state]  # another one, loaded anew


def test_an_idle_stream_is_sealed(database: Database) -> None:
    states = StreamStates(database, 0.0)
    for batch in made_batches(made_columns(10)):
        states.absorb(submission_of("stream-a", batch, LAYOUT))
    assert states.has_idle()
    states.seal_idle()
    (state,) = states.dirty()
    assert len(state.pending.chunks) == 1
    assert state.ended
