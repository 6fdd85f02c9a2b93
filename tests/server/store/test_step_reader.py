from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.commits import Commits
from tests.support.streams import (
    SECOND_NS,
    START_NS,
    Columns,
    made_batches,
    open_store,
    register_stream,
    registration,
    submission_of,
)
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import TOO_LARGE, VramscopeError
from vramscope_protocol.messages import Field
from vramscope_server.rows import ColumnLayout
from vramscope_server.store import step_reader
from vramscope_server.store.store import Store

FIELDS = [
    Field("time_ns", "q", "ns"),
    Field("step", "q"),
    Field("reserved_bytes.all.peak", "q", "B"),
    Field("allocated_bytes.all.peak", "q", "B"),
    Field("loss", "d"),
]
COUNT = 1000


def step_columns(first_step: int, count: int, start_ns: int, seed: int) -> Columns:
    random = np.random.default_rng(seed)
    loss = random.random(count)
    loss[::7] = np.nan
    return {
        "time_ns": start_ns + np.arange(count) * SECOND_NS // 2,
        "step": np.arange(first_step, first_step + count),
        "reserved_bytes.all.peak": random.integers(2**30, 2**34, count),
        "allocated_bytes.all.peak": random.integers(2**29, 2**33, count),
        "loss": loss,
    }


COLUMNS = step_columns(1, COUNT, START_NS, 1)
RESUMED = step_columns(801, 100, START_NS + 2000 * SECOND_NS, 2)
"""The process died after step 1000 and went on from a checkpoint of step 800."""


def fill(store: Store, lives: dict[str, Columns]) -> None:
    """Store the lives of one rank one after the other."""
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed)
    layout = ColumnLayout(FIELDS)
    for uid, columns in lives.items():
        register_stream(store, registration(uid))
        batches = list(made_batches(columns, rows=7, kind="step", fields=FIELDS))
        for batch in batches:
            assert store.submit(submission_of(uid, batch, layout))
        commits.wait_for_ack(uid, len(batches))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(Path(tmp_path_factory.mktemp("steps")))
    fill(store, {"stream-a": COLUMNS, "stream-b": RESUMED})
    yield store
    store.close()


def test_every_step_comes_back_exactly_over_all_lives(store: Store) -> None:
    steps = store.steps("run-a", 0)
    for name, got in (("step", steps.step), ("time_ns", steps.time_ns), *steps.columns.items()):
        np.testing.assert_array_equal(got, np.concatenate([COLUMNS[name], RESUMED[name]]))
    assert list(steps.columns) == [field.name for field in FIELDS[2:]]


def test_a_range_of_steps_includes_both_ends(store: Store) -> None:
    steps = store.steps("run-a", 0, ["loss"], start=100, end=333)
    assert steps.step.tolist() == list(range(100, 334))
    np.testing.assert_array_equal(steps.columns["loss"], COLUMNS["loss"][99:333])
    both = store.steps("run-a", 0, ["loss"], start=900, end=900)
    assert len(both.step) == 2  # once in each life
    assert both.life.tolist() == [0, 1]
    second = store.steps("run-a", 0, ["loss"], start=900, end=900, life=1)
    assert (second.step.tolist(), second.life.tolist()) == ([900], [1])
    assert second.time_ns[0] == both.time_ns[1]


def test_a_life_whose_clock_is_behind_still_comes_after_the_one_before_it(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path)
    fill(
        store,
        {
            "stream-a": step_columns(1, 20, START_NS, 1),
            "stream-b": step_columns(11, 20, START_NS - 3600 * SECOND_NS, 2),
        },
    )
    steps = store.steps("run-a", 0, ["loss"])
    store.close()
    assert steps.life.tolist() == [0] * 20 + [1] * 20
    assert steps.step.tolist() == [*range(1, 21), *range(11, 31)]


@pytest.mark.parametrize("points", [2, 10, 99, 500])
def test_fewer_points_keep_the_peaks_and_invent_nothing(store: Store, points: int) -> None:
    steps = store.steps("run-a", 0, ["loss"], end=800, points=points)
    assert 0 < len(steps.step) <= points
    for name in ("reserved_bytes.all.peak", "allocated_bytes.all.peak"):
        highest = COLUMNS["step"][:800][COLUMNS[name][:800].argmax()]
        assert highest in steps.step
    rows = steps.step - 1
    np.testing.assert_array_equal(steps.columns["loss"], COLUMNS["loss"][rows])
    np.testing.assert_array_equal(steps.time_ns, COLUMNS["time_ns"][rows])


def test_fewer_points_keep_the_exact_peaks_of_steps_where_they_are_known(tmp_path: Path) -> None:
    exact = [
        Field("step.peak_allocated_bytes", "q", "B"),
        Field("category.buffers_bytes", "q", "B"),
    ]
    fields = [*FIELDS, *exact]
    columns = step_columns(1, 300, START_NS, 3)
    # The job's own peaks stand still: they cannot tell one step from another.
    columns["reserved_bytes.all.peak"] = np.full(300, 2**34)
    columns["allocated_bytes.all.peak"] = np.full(300, 2**33)
    peaks = np.full(300, UNKNOWN)
    peaks[100:] = 2**30 + np.arange(200) % 7
    peaks[222] = 2**31
    columns |= {"step.peak_allocated_bytes": peaks, "category.buffers_bytes": peaks}
    store = open_store(tmp_path)
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed)
    register_stream(store, registration("stream-a"))
    batches = list(made_batches(columns, rows=50, kind="step", fields=fields))
    for batch in batches:
        assert store.submit(submission_of("stream-a", batch, ColumnLayout(fields)))
    commits.wait_for_ack("stream-a", len(batches))
    late = store.steps("run-a", 0, ["step.peak_allocated_bytes"], start=101, points=2)
    early = store.steps("run-a", 0, ["step.peak_allocated_bytes", "never"], end=100, points=2)
    store.close()
    assert 223 in late.step
    assert late.columns["step.peak_allocated_bytes"].max() == 2**31
    assert 0 < len(early.step) <= 2


def test_an_answer_without_points_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_reader, "MAX_ROWS", 500)
    with pytest.raises(VramscopeError, match="at most 500 steps, got one of 600") as refused:
        store.steps("run-a", 0)
    assert refused.value.code == TOO_LARGE
    assert len(store.steps("run-a", 0, ["loss"], points=10).step) <= 10
    assert len(store.steps("run-a", 0, ["loss"], start=901).step) == 100


def test_a_field_that_was_never_sent_is_unknown(store: Store) -> None:
    steps = store.steps("run-a", 0, ["nonsense"], end=10)
    assert steps.payload()["columns"]["nonsense"] == [None] * 10


def test_no_steps_at_all(store: Store) -> None:
    assert store.steps("run-x", 0, ["loss"]).payload() == {
        "step": [], "time_ns": [], "life": [], "columns": {"loss": []},
    }  # fmt: skip


def test_a_step_that_is_not_known_is_null(store: Store) -> None:
    payload = store.steps("run-a", 0, ["loss"], end=8).payload()
    assert payload["columns"]["loss"][0] is None
    assert payload["columns"]["loss"][1] == COLUMNS["loss"][1]
    assert UNKNOWN not in payload["step"]


def test_the_names_of_all_fields(store: Store) -> None:
    assert store.field_names("run-a", 0, "step") == FIELDS
    assert store.field_names("run-a", 0, "sample") == []
