from __future__ import annotations

import msgspec

from tests.support.streams import made_columns, made_rows
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Lost
from vramscope_server.registry.stream_summary import StreamSummary


def test_newest_values_and_the_highest_peak() -> None:
    columns = made_columns(30, unknown_share=0.0)
    columns["device.used_bytes"][-1] = UNKNOWN
    summary = StreamSummary()
    summary.take_rows(made_rows(columns).part(0, 20))
    peak = summary.peak_reserved_bytes
    summary.take_rows(made_rows(columns).part(20, 30))
    assert summary.step == 9
    assert summary.used_bytes == columns["device.used_bytes"][19]  # the last one that is known
    assert summary.peak_reserved_bytes == columns["reserved_bytes.all.current"].max()
    assert peak == columns["reserved_bytes.all.current"][:20].max()
    assert summary.total_bytes is None
    assert summary.samples.received == 30
    assert msgspec.json.decode(msgspec.json.encode(summary), type=StreamSummary) == summary


def test_missing_rows_are_counted_and_what_was_reported_is_not_counted_twice() -> None:
    summary = StreamSummary()
    columns = made_columns(10)
    summary.take_rows(made_rows(columns))
    summary.take_rows(made_rows(columns, first_index=25))
    assert summary.samples.lost_by_reason() == {"unreported": 15}
    summary.take_lost(Lost(samples={"outbox full": 12, "nothing": 0}, messages={"big": 1}))
    assert summary.samples.lost_by_reason() == {"outbox full": 12, "unreported": 3}
    summary.take_lost(Lost(samples={"outbox full": 20}))  # more than the gap: the rest is to come
    assert summary.samples.lost_by_reason() == {"outbox full": 20}
    assert summary.lost_messages == {}


def test_steps_are_counted_apart() -> None:
    summary = StreamSummary()
    summary.take_rows(made_rows(made_columns(5), kind="step"))
    assert (summary.steps.received, summary.samples.received) == (5, 0)


def test_the_first_step_is_the_lowest_with_a_row_of_its_own() -> None:
    summary = StreamSummary()
    columns = made_columns(9)
    columns["step"] += 40
    summary.take_rows(made_rows(columns))  # samples tell where the job was, not what was kept
    assert summary.first_step is None
    summary.take_rows(made_rows(columns, kind="step").part(3, 9))
    summary.take_rows(made_rows(columns, kind="step").part(3, 9))
    assert summary.first_step == 41
