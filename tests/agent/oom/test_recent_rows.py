from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from tests.support.recording_outbox import RecordingOutbox
from vramscope.oom import recent_rows
from vramscope.oom.recent_rows import RecentRows
from vramscope.sampling.rows import FieldSet, RowBuffer
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Field

FIELDS = FieldSet([Field("time_ns", "q"), Field("step", "q"), Field("a", "q"), Field("b", "d")])


class Rig:
    """Rows as they go to the outbox, with a look at them on their way."""

    def __init__(self, **options: Any) -> None:
        self.outbox = RecordingOutbox()
        self.buffer = RowBuffer("sample", self.outbox)
        values: dict[str, Any] = {"max_age_ns": None, "max_rows": 100, **options}
        self.recent = RecentRows(lambda: self.outbox.tables, self.buffer.waiting, **values)

    def add(self, *rows: tuple[float, ...], fields: FieldSet = FIELDS) -> None:
        for row in rows:
            self.buffer.append(fields, list(row))

    def flush(self) -> None:
        before = len(self.outbox.messages)
        self.buffer.flush()
        for batch in self.outbox.messages[before:]:
            self.recent.take(batch)


def test_rows_that_were_sent_and_that_wait_are_one_table() -> None:
    rig = Rig()
    rig.add((10, 1, 5, 0.5), (20, 2, UNKNOWN, math.nan))
    rig.flush()
    rig.add((30, 3, 7, math.inf))
    assert rig.recent.columns() == {
        "time_ns": [10, 20, 30],
        "number": [1, 2, 3],
        "columns": {"a": [5, None, 7], "b": [0.5, None, None]},
    }


def test_a_column_that_came_later_is_unknown_before_and_one_never_known_is_left_out() -> None:
    rig = Rig()
    more = FieldSet([Field("time_ns", "q"), Field("step", "q"), Field("c", "q"), Field("d", "q")])
    rig.add((10, 1, 5, 0.5))
    rig.add((20, 2, 9, UNKNOWN), fields=more)
    columns = rig.recent.columns()["columns"]
    assert columns == {"a": [5, None], "b": [0.5, None], "c": [None, 9]}


def test_the_newest_row_is_among_those_that_are_left_of_many() -> None:
    rig = Rig(max_rows=10)
    rig.add(*((number, number, 1, 1.0) for number in range(95)))
    found = rig.recent.columns()["time_ns"]
    assert len(found) == 10
    assert found[-1] == 94
    assert {b - a for a, b in pairwise(found)} == {10}


def test_what_is_old_or_too_much_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("vramscope.oom.recent_rows.time.monotonic_ns", lambda: now[0])
    rig = Rig(max_age_ns=100)
    for number in range(5):
        now[0] = number * 60
        rig.add((number, number, 1, 1.0))
        rig.flush()
    assert rig.recent.columns()["time_ns"] == [3, 4]
    monkeypatch.setattr(recent_rows, "MAX_KEPT_BYTES", 1)
    rig.add((5, 5, 1, 1.0))
    rig.flush()
    assert rig.recent.columns()["time_ns"] == [5]


def test_by_number_whole_batches_go() -> None:
    rig = Rig(max_rows=4)
    for first in range(0, 12, 3):
        rig.add(*((number, number, 1, 1.0) for number in range(first, first + 3)))
        rig.flush()
    # Six rows in two batches are left, of which every second one is given.
    assert rig.recent.columns()["time_ns"] == [7, 9, 11]


def test_without_rows_there_is_an_empty_table() -> None:
    assert Rig().recent.columns() == {"time_ns": [], "number": [], "columns": {}}
