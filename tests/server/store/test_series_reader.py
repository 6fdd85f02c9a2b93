from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.commits import Commits
from tests.support.streams import (
    FIELDS,
    SECOND_NS,
    START_NS,
    Columns,
    made_batches,
    made_columns,
    open_store,
    register_stream,
    registration,
    submission_of,
)
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Field, Register
from vramscope_server.rows import ColumnLayout
from vramscope_server.store.store import Store
from vramscope_server.store.writer import WriterLimits

SPAN_S = 3 * 3600 + 777
"""Long enough for closed 60 s windows, and cut where every level has an open tail."""


def fill(
    store: Store,
    columns: Columns,
    register: Register,
    fields: list[Field] = FIELDS,
    rows: int = 300,
) -> None:
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed, WriterLimits(commit_interval_s=0.05))
    register_stream(store, register)
    layout = ColumnLayout(fields)
    batches = list(made_batches(columns, rows=rows, fields=fields))
    for batch in batches:
        while not store.submit(submission_of(register.stream, batch, layout)):
            commits.wait_for_ack(register.stream, batch.seq - 10)
    commits.wait_for_ack(register.stream, len(batches))
    store.stop()


@pytest.fixture(scope="module")
def columns() -> Columns:
    return made_columns(SPAN_S, rate_hz=1.0, unknown_share=0.1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, columns: Columns) -> Iterator[Store]:
    store = open_store(tmp_path_factory.mktemp("series"))
    fill(store, columns, registration())
    yield store
    store.close()


def known(values: NDArray[Any]) -> NDArray[Any]:
    is_known = values != UNKNOWN if values.dtype.kind == "i" else ~np.isnan(values)
    return np.compress(is_known, values)


def test_raw_samples_come_back_as_they_were(store: Store, columns: Columns) -> None:
    names = [field.name for field in FIELDS]
    start = START_NS + 5000 * SECOND_NS
    end = start + 1000 * SECOND_NS
    series = store.series("run-a", 0, names, start, end, points=2000)
    inside = (columns["time_ns"] >= start) & (columns["time_ns"] <= end)
    assert series.resolution_ms == 0
    assert series.time_ns.tolist() == columns["time_ns"][inside].tolist()
    for name in names:
        for values in series.columns[name][:3]:
            np.testing.assert_array_equal(values, columns[name][inside])


@pytest.mark.parametrize("points", [1, 50, 150, 1000, 20000])
@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [(None, None), (0, 40), (1000, 1600), (3000, 9000), (SPAN_S - 900, None), (-500, 4000)],
)
@pytest.mark.parametrize("name", ["device.used_bytes", "loss"])
def test_every_zoom_equals_brute_force(
    store: Store,
    columns: Columns,
    points: int,
    start_s: int | None,
    end_s: int | None,
    name: str,
) -> None:
    start = None if start_s is None else START_NS + start_s * SECOND_NS
    end = None if end_s is None else START_NS + end_s * SECOND_NS
    series = store.series("run-a", 0, [name], start, end, points)
    got = series.columns[name]
    times = columns["time_ns"]
    first = int(times[0]) if start is None else max(start, int(times[0]))
    last = int(times[-1]) if end is None else min(end, int(times[-1]))
    # A bucket of a rollup that reaches over an edge of the span is shown as a whole.
    slack = 60 * SECOND_NS if (last - first) / points >= SECOND_NS else 0
    inside = columns[name][(times >= first) & (times <= last)]
    around = columns[name][(times >= first - slack) & (times <= last + slack)]
    assert len(series.time_ns) <= points
    assert (np.diff(series.time_ns) > 0).all()
    assert len(known(inside)) <= got.known.sum() <= len(known(around))
    assert known(inside).max() <= known(got.maximum).max() <= known(around).max()
    assert known(around).min() <= known(got.minimum).min() <= known(inside).min()
    if series.resolution_ms == 0:
        np.testing.assert_array_equal(got.maximum, inside)


@pytest.mark.parametrize("points", [20, 100, 150, 1000])
def test_each_point_is_the_min_mean_and_max_of_its_time(
    store: Store, columns: Columns, points: int
) -> None:
    """The levels partition the samples: counted one after the other they are all the samples."""
    series = store.series("run-a", 0, ["device.used_bytes"], points=points)
    got = series.columns["device.used_bytes"]
    values = columns["device.used_bytes"]
    ends = np.searchsorted(np.cumsum(values != UNKNOWN), np.cumsum(got.known)) + 1
    starts = np.concatenate([[0], ends[:-1]])
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        inside = known(values[start:end])
        if not got.known[at]:
            continue
        assert got.minimum[at] == inside.min()
        assert got.maximum[at] == inside.max()
        assert abs(int(got.mean[at]) - float(inside.mean())) < 3


@pytest.mark.parametrize(
    ("points", "at_most"), [(10, 4 + 7 + 11 + 61), (400, 19 + 11 + 61), (3000, 194 + 61)]
)
def test_a_long_span_reads_a_bounded_number_of_stored_rows(
    store: Store, points: int, at_most: int
) -> None:
    series = store.series("run-a", 0, ["device.used_bytes"], points=points)
    assert 0 < series.stored_rows <= at_most


def test_a_field_that_was_never_sent_is_unknown(store: Store) -> None:
    series = store.series("run-a", 0, ["nonsense", "loss"], points=50)
    assert series.columns["nonsense"].known.sum() == 0
    payload = series.payload(0)
    assert set(payload["columns"]["nonsense"]["max"]) == {None}
    assert len(payload["time_ns"]) == len(payload["columns"]["loss"]["mean"])
    json.dumps(payload, allow_nan=False)


@pytest.mark.parametrize(("run", "rank"), [("run-x", 0), ("run-a", 9)])
def test_a_rank_without_samples_has_an_empty_series(store: Store, run: str, rank: int) -> None:
    series = store.series(run, rank, ["loss"])
    assert series.payload(rank)["columns"]["loss"] == {"min": [], "mean": [], "max": []}


def test_a_span_outside_of_the_samples_is_empty(store: Store) -> None:
    assert len(store.series("run-a", 0, ["loss"], START_NS - 99, START_NS - 9).time_ns) == 0


def test_lives_of_a_rank_are_one_series(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    first = made_columns(700, seed=1)
    second = made_columns(900, seed=2, start_ns=START_NS + 200 * SECOND_NS)
    other_types = [*FIELDS[:3], Field("device.used_bytes", "d", "B"), *FIELDS[4:]]
    second["device.used_bytes"] = second["device.used_bytes"].astype(np.float64)
    fill(store, first, registration("stream-a"))
    fill(store, second, registration("stream-b"), other_types)
    series = store.series("run-a", 0, ["step", "device.used_bytes"], points=10**5)
    times = np.concatenate([first["time_ns"], second["time_ns"]])
    assert series.time_ns.tolist() == times.tolist()
    used = np.where(
        first["device.used_bytes"] == UNKNOWN, np.nan, first["device.used_bytes"].astype(float)
    )
    np.testing.assert_array_equal(
        series.columns["device.used_bytes"].mean,
        np.concatenate([used, second["device.used_bytes"]]),
    )
    store.close()


def test_lives_that_overlap_are_shown_in_order_of_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    first = made_columns(600, seed=1)
    second = made_columns(600, seed=2, start_ns=START_NS + 30 * SECOND_NS)
    fill(store, first, registration("stream-a"))
    fill(store, second, registration("stream-b"))
    times = np.sort(np.concatenate([first["time_ns"], second["time_ns"]]))
    series = store.series("run-a", 0, ["share"], points=10**5)
    assert series.time_ns.tolist() == times.tolist()
    store.close()


def test_a_field_table_that_changes_in_midst_of_a_window(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    columns = made_columns(8000, rate_hz=1.0, unknown_share=0.0)
    fewer = [field for field in FIELDS if field.name != "loss"]
    commits = Commits()
    store.start(commits.on_commit, commits.on_stream_failed, WriterLimits(commit_interval_s=0.05))
    register_stream(store)
    for batch in made_batches({k: v[:4321] for k, v in columns.items()}, rows=100):
        store.submit(submission_of("stream-a", batch, ColumnLayout(FIELDS)))
    rest = {k: v[4321:] for k, v in columns.items()}
    for batch in made_batches(rest, rows=100, fields=fewer, first_seq=45, first_index=4321):
        store.submit(submission_of("stream-a", batch, ColumnLayout(fewer)))
    commits.wait_for_ack("stream-a", 81)
    for points in (20, 500, 5000):
        series = store.series("run-a", 0, ["loss", "device.used_bytes"], points=points)
        assert series.columns["loss"].known.sum() == 4321
        assert series.columns["device.used_bytes"].known.sum() == 8000
        assert known(series.columns["loss"].maximum).max() == columns["loss"][:4321].max()
    store.close()
