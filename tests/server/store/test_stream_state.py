from __future__ import annotations

from collections.abc import Iterator
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
from vramscope_protocol.messages import CommandUpdate, Event, Goodbye, Lost
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.commit import write_streams
from vramscope_server.store.field_tables import FieldTables
from vramscope_server.store.store import Store
from vramscope_server.store.stream_state import StreamState, load_heads, load_stream
from vramscope_server.store.submission import Submission

LAYOUT = ColumnLayout(FIELDS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    register_stream(store)
    yield store
    store.close()


def loaded(store: Store) -> StreamState:
    state = store.read_now(lambda c: load_stream(c, "stream-a"))
    assert state is not None
    return state


def commit(store: Store, state: StreamState) -> None:
    state.prepare()
    store.write_now(lambda c: write_streams(c, [state], FieldTables()))
    state.committed()


def test_a_message_is_taken_once(store: Store) -> None:
    state = loaded(store)
    for message in (Event(1, START_NS, "a"), Event(1, START_NS, "a"), Event(3, START_NS, "b")):
        state.absorb(submission_of("stream-a", message, LAYOUT))
    assert [event["kind"] for event in state.pending.events] == ["a", "b"]
    assert (state.last_seq, state.committed_seq, state.dirty) == (3, 0, True)
    commit(store, state)
    assert (state.committed_seq, state.dirty) == (3, False)
    assert loaded(store).last_seq == 3


def test_heads_hold_only_what_is_new_since_the_last_commit(store: Store) -> None:
    state = loaded(store)
    batches = list(made_batches(made_columns(60)))
    for batch in batches[:3]:
        state.absorb(submission_of("stream-a", batch, LAYOUT))
    commit(store, state)
    for batch in batches[3:5]:
        state.absorb(submission_of("stream-a", batch, LAYOUT))
    state.prepare()
    ((_, head),) = state.pending.heads
    assert (head["start_position"], head["row_count"], head["first_index"]) == (30, 20, 30)
    commit(store, state)
    heads = store.read_now(lambda c: load_heads(c, state.stream_id, "sample", 0))
    assert [len(rows) for rows in heads] == [30, 20]
    again = loaded(store)
    assert again.builders["sample"].end_position == 50
    assert again.head_positions["sample"] == 50
    assert again.summary == state.summary


def test_a_goodbye_seals_what_is_open(store: Store) -> None:
    state = loaded(store)
    for batch in made_batches(made_columns(20)):
        state.absorb(submission_of("stream-a", batch, LAYOUT))
    commit(store, state)
    state.absorb(submission_of("stream-a", Goodbye(3, START_NS, "exception", 1, "boom"), LAYOUT))
    assert state.ended
    ((_, chunk),) = state.pending.chunks
    assert (chunk["row_count"], chunk["first_step"], chunk["last_step"]) == (20, 0, 6)
    commit(store, state)
    assert store.read_now(lambda c: load_heads(c, state.stream_id, "sample", 0)) == []
    assert loaded(store).builders["sample"].position == 20


def test_losses_and_updates(store: Store) -> None:
    state = loaded(store)
    state.absorb(Submission("stream-a", 0, Lost(samples={"full": 2}), START_NS, 1))
    state.absorb(submission_of("stream-a", CommandUpdate(1, "c", "running", 5), LAYOUT))
    commit(store, state)
    assert loaded(store).summary.samples.losses == {"full": 2}


def test_a_stream_that_nobody_registered(store: Store) -> None:
    assert store.read_now(lambda c: load_stream(c, "nobody")) is None
