from __future__ import annotations

import tracemalloc

import pytest

from vramscope.outbox.entry import NO_TABLE, count_lost, entry_of
from vramscope.outbox.losses import Losses
from vramscope_protocol.codec import decode_agent_message
from vramscope_protocol.messages import (
    Batch,
    CommandUpdate,
    DurableMessage,
    Event,
    Goodbye,
    Lost,
)

SAMPLES = Batch(0, "sample", 3, 40, 12, b"columns")
STEPS = Batch(0, "step", 4, 7, 5, b"columns")
OTHERS: list[DurableMessage] = [
    Event(0, 1, "mark", 9, "text", {"a": [1, 2]}),
    CommandUpdate(0, "c1", "queued", 1),
    Goodbye(0, 1, "exit", 3),
]


@pytest.mark.parametrize("message", [SAMPLES, STEPS, *OTHERS], ids=lambda m: type(m).__name__)
def test_what_is_sent_is_the_message_with_its_number(message: DurableMessage) -> None:
    entry = entry_of(message, 17)
    assert entry.seq == 17
    sent = decode_agent_message(entry.frame)
    assert isinstance(sent, DurableMessage)
    assert sent.seq == 17
    assert sent == message


def test_a_batch_says_which_field_table_must_go_before_it_and_others_need_none() -> None:
    assert [entry_of(batch, 1).table for batch in (SAMPLES, STEPS)] == [3, 4]
    assert {entry_of(message, 1).table for message in OTHERS} == {NO_TABLE}
    first_table = Batch(0, "sample", 0, 0, 1, b"")
    assert entry_of(first_table, 1).table != NO_TABLE


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        (SAMPLES, Lost(samples={"outbox_full": 12}, last_dropped_seq=8)),
        (STEPS, Lost(steps={"outbox_full": 5}, last_dropped_seq=8)),
        (OTHERS[0], Lost(messages={"outbox_full": 1}, last_dropped_seq=8)),
    ],
)
def test_a_dropped_entry_is_counted_in_rows_of_its_kind(
    message: DurableMessage, lost: Lost
) -> None:
    losses = Losses()
    count_lost(losses, "outbox_full", entry_of(message, 8))
    assert losses.message() == lost


@pytest.mark.parametrize("columns_bytes", [10, 5000])
def test_the_size_is_what_the_memory_bound_can_rely_on(columns_bytes: int) -> None:
    batch = Batch(0, "sample", 3, 40, 12, bytes(columns_bytes))
    tracemalloc.start()
    try:
        entries = [entry_of(batch, 1_000_000 + number) for number in range(1000)]
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted_bytes = sum(entry.size_bytes for entry in entries)
    assert counted_bytes / 1.3 < taken_bytes < counted_bytes * 1.3
