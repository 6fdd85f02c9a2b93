"""Rows are kept from the beginning on in bounded memory: lowest and highest, never an average."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from tests.support.server_rows import make_rows
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.columns import Rows as EvidenceRows
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import Field
from vramscope_server.findings import row_history
from vramscope_server.findings.row_history import RowHistory
from vramscope_server.rows import ColumnLayout, Rows

FLOOR = "allocated_bytes.all.current"
LAYOUT = ColumnLayout([Field(name, "q") for name in ("time_ns", "step", FLOOR, "peak")])


def steps(first: int, floors: list[int], peaks: list[int] | None = None) -> Rows:
    """Steps of a second each, as ingest hands them on."""
    numbers = list(range(first, first + len(floors)))
    columns = [[n * 10**9 for n in numbers], numbers, floors, floors if peaks is None else peaks]
    body = encode_columns(array("q", column) for column in columns)
    return Rows.from_batch("step", first, LAYOUT, len(floors), body)


def history(head: int = 4) -> RowHistory:
    return RowHistory(head, FLOOR, "peak")


def test_rows_come_back_as_they_came() -> None:
    kept = history()
    assert len(kept.rows(10)) == 0
    kept.append(steps(1, [5, 6]))
    kept.append(steps(3, [7]))
    rows = kept.rows(10)
    assert rows.number is not None
    assert rows.number.tolist() == [1, 2, 3]
    assert rows.time_ns.tolist() == [10**9, 2 * 10**9, 3 * 10**9]
    assert rows.numbers(FLOOR).tolist() == [5, 6, 7]


def test_what_was_given_out_stays_as_it_is() -> None:
    kept = history()
    kept.append(steps(1, list(range(100))))
    before = kept.rows(50)
    copy = before.numbers(FLOOR).tolist()
    for first in range(101, 2000, 100):
        kept.append(steps(first, [9] * 100))
        kept.rows(50)
    assert before.numbers(FLOOR).tolist() == copy


def test_the_newest_are_whole_and_of_older_ones_the_lowest_and_the_highest_stay() -> None:
    random = np.random.default_rng(1)
    floors = random.integers(0, 1 << 30, 5000).tolist()
    peaks = random.integers(1 << 30, 1 << 31, 5000).tolist()
    kept = history()
    for first in range(0, 5000, 7):  # taken in little by little, as in life
        kept.append(steps(first, floors[first : first + 7], peaks[first : first + 7]))
        kept.rows(64)
    rows = kept.rows(64)
    assert rows.number is not None
    numbers = rows.number.tolist()
    assert numbers[-64:] == list(range(5000 - 64, 5000))
    assert numbers[:4] == [0, 1, 2, 3]
    assert numbers == sorted(set(numbers))
    assert len(numbers) < 64 * 8
    # Every row is one that came, and none of what is drawn out of a group is missed.
    assert rows.numbers(FLOOR).tolist() == [floors[number] for number in numbers]
    for start in range(1024, 4096, 512):
        part = range(start, start + 512)
        seen = [number for number in numbers if number in part]
        assert min(floors[n] for n in seen) == min(floors[n] for n in part)
        assert max(peaks[n] for n in seen) == max(peaks[n] for n in part)


def test_it_grows_by_half_a_window_when_the_run_is_twice_as_long() -> None:
    sizes: list[int] = []
    for count in (1 << 12, 1 << 13, 1 << 14):
        kept = history(head=0)
        for first in range(0, count, 256):
            kept.append(steps(first, [1] * 256))
            kept.rows(128)
        sizes.append(len(kept.rows(128)))
    assert sizes[0] < 128 * 6
    assert sizes[2] - sizes[0] < 3 * 128
    assert kept.held_bytes < 128 * 16 * 5 * 8


def test_what_is_not_known_is_never_the_lowest() -> None:
    kept = history(head=0)
    floors = [10 + number if number % 4 == 2 else UNKNOWN for number in range(1000)]
    kept.append(steps(0, floors, [7] * 1000))
    rows = kept.rows(16)
    assert rows.number is not None
    older = [number for number in rows.number.tolist() if number < 900]
    # One of each group is known, and the other is the first of those that are equally high.
    assert [number % 4 for number in older].count(2) == len(older) // 2


def test_columns_may_come_and_change_their_type() -> None:
    kept = history()
    kept.append(make_rows("step", time_ns=[1, 2], step=[1, 2], a=[1, 2]))
    kept.append(make_rows("step", time_ns=[3], step=[3], a=[0.5], b=[7]))
    kept.append(make_rows("step", time_ns=[4], step=[4], a=[9]))
    rows = kept.rows(10)
    assert rows.numbers("a").tolist() == [1, 2, 0.5, 9]
    assert np.isnan(rows.numbers("b")[[0, 1, 3]]).all()
    assert rows.numbers("b")[2] == 7


def test_what_no_judge_reads_is_not_kept() -> None:
    kept = history()
    kept.append(make_rows("step", time_ns=[1], step=[1], agent__cpu_us=[5], device__power_mw=[1]))
    assert list(kept.rows(10).columns) == []


def test_columns_and_batches_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_history, "MAX_COLUMNS", 3)
    monkeypatch.setattr(row_history, "MAX_WAITING", 2)
    kept = history()
    for number in range(1, 6):
        kept.append(make_rows("step", time_ns=[number], step=[number], a=[number], b=[number]))
    rows = kept.rows(10)
    assert rows.number is not None
    assert rows.number.tolist() == [4, 5]
    assert list(rows.columns) == ["a"]


def test_earlier_rows_are_put_before_those_that_came() -> None:
    kept = history()
    kept.append(steps(5, [50, 60]))
    earlier = EvidenceRows(
        np.array([3, 4, 5], np.int64) * 10**9,
        {FLOOR: np.array([30, 40, 50]), "more": np.array([1, 2, 3])},
        np.array([3, 4, 5]),
    )
    kept.put_before(earlier)
    kept.append(steps(7, [70]))
    rows = kept.rows(10)
    assert rows.number is not None
    assert rows.number.tolist() == [3, 4, 5, 6, 7]
    assert rows.numbers(FLOOR).tolist() == [30, 40, 50, 60, 70]
    assert np.isnan(rows.numbers("more")[2:]).all()


def test_earlier_rows_alone_are_kept_too() -> None:
    kept = history()
    kept.put_before(EvidenceRows(np.array([1, 2]), {FLOOR: np.array([1, 2])}, np.array([1, 2])))
    assert kept.rows(10).numbers(FLOOR).tolist() == [1, 2]
