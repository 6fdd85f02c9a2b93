"""Rows arrive as batches, in order, and every dropped one is counted."""

from __future__ import annotations

import math

import pytest

from tests.support.recording_outbox import RecordingOutbox
from vramscope.sampling.rows import FieldSet, RowBuffer
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Field, FieldTable

FIELDS = [Field("time_ns", "q", "ns"), Field("step", "q"), Field("user.loss", "d")]


def test_rows_become_one_batch_with_their_table_declared_first() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("step", outbox)
    fields = FieldSet(FIELDS)
    buffer.append(fields, [10, 1, 0.5])
    buffer.append(fields, [20, 2, 0.25])
    buffer.flush()
    (batch,) = outbox.batches("step")
    assert (batch.first_index, batch.count, batch.table) == (0, 2, fields.table)
    assert outbox.tables[fields.table].fields == FIELDS
    assert [row["user.loss"] for row in outbox.rows("step")] == [0.5, 0.25]


def test_what_waits_can_be_looked_at() -> None:
    buffer = RowBuffer("step", RecordingOutbox())
    fields = FieldSet(FIELDS)
    buffer.append(fields, [10, 1, 0.5])
    assert buffer.waiting() == [(tuple(FIELDS), [10, 1, 0.5])]
    buffer.flush()
    assert buffer.waiting() == []


def test_the_row_index_goes_on_and_the_table_is_declared_once() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("sample", outbox)
    fields = FieldSet(FIELDS)
    for number in range(3):
        buffer.append(fields, [number, 0, 0.0])
        buffer.flush()
    buffer.flush()
    assert [batch.first_index for batch in outbox.batches("sample")] == [0, 1, 2]
    assert len(outbox.tables) == 1


def test_new_columns_are_a_new_table_and_a_new_batch() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("sample", outbox)
    narrow, wide = FieldSet(FIELDS[:2]), FieldSet(FIELDS)
    buffer.append(narrow, [1, 0])
    buffer.append(wide, [2, 0, 1.5])
    buffer.append(wide, [3, 0, 2.5])
    buffer.flush()
    assert narrow.table != wide.table
    assert [(b.table, b.first_index, b.count) for b in outbox.batches("sample")] == [
        (narrow.table, 0, 1),
        (wide.table, 1, 2),
    ]


def test_beyond_the_bound_the_oldest_rows_go_and_are_counted() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("sample", outbox, max_rows=3)
    fields = FieldSet(FIELDS[:2])
    for number in range(8):
        buffer.append(fields, [number, 0])
    buffer.flush()
    assert [row["time_ns"] for row in outbox.rows("sample")] == [5, 6, 7]
    assert outbox.batches("sample")[0].first_index == 5
    assert outbox.lost == [("row_buffer_full", 5, 0)]


def test_rows_dropped_in_the_middle_of_a_flush_part_the_batches() -> None:
    class BusyOutbox(RecordingOutbox):
        def declare(self, table: FieldTable) -> None:
            super().declare(table)
            if len(self.tables) == 1:
                for number in (3, 4, 5):
                    buffer.append(second, [number, 0, 0.0])

    outbox = BusyOutbox()
    buffer = RowBuffer("sample", outbox, max_rows=3)
    first, second = FieldSet(FIELDS[:2]), FieldSet(FIELDS)
    buffer.append(first, [0, 0])
    buffer.append(second, [1, 0, 0.0])
    buffer.append(second, [2, 0, 0.0])
    buffer.flush()
    buffer.flush()
    assert [row["time_ns"] for row in outbox.rows("sample")] == [0, 1, 3, 4, 5]
    assert [batch.first_index for batch in outbox.batches("sample")] == [0, 1, 3, 4]
    assert outbox.lost == [("row_buffer_full", 1, 0)]


def test_lost_step_rows_are_counted_as_steps() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("step", outbox, max_rows=1)
    fields = FieldSet(FIELDS[:2])
    buffer.append(fields, [1, 1])
    buffer.append(fields, [2, 2])
    buffer.flush()
    assert outbox.lost == [("row_buffer_full", 0, 1)]


def test_a_batch_stays_within_the_limit_of_a_message() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("sample", outbox)
    fields = FieldSet([Field(f"f{number}", "q") for number in range(400)])
    for number in range(400):
        buffer.append(fields, [number] * 400)
    buffer.flush()
    sizes = [len(batch.columns) for batch in outbox.batches("sample")]
    assert max(sizes) <= 1 << 19
    assert len(outbox.rows("sample")) == 400
    assert outbox.lost == []


def test_one_odd_value_does_not_cost_the_batch() -> None:
    outbox = RecordingOutbox()
    buffer = RowBuffer("sample", outbox)
    fields = FieldSet(FIELDS)
    odd: list[object] = [2**70, 1.5, "text"]
    buffer.append(fields, odd)  # type: ignore[arg-type]  # what the test is about
    buffer.append(fields, [7, 1, 2])
    buffer.flush()
    first, second = outbox.rows("sample")
    assert (first["time_ns"], first["step"]) == (UNKNOWN, UNKNOWN)
    assert math.isnan(first["user.loss"])
    assert second == {"time_ns": 7, "step": 1, "user.loss": 2.0}


def test_a_row_that_does_not_fit_its_fields_is_an_error_at_once() -> None:
    buffer = RowBuffer("sample", RecordingOutbox())
    with pytest.raises(ValueError, match="expected 3 values, got 1"):
        buffer.append(FieldSet(FIELDS), [1])
