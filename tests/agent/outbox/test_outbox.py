from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from vramscope.notices import Notices
from vramscope.outbox.entry import Entry
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.outbox.spool import Spool
from vramscope_protocol.codec import decode_agent_message
from vramscope_protocol.messages import Batch, Event, FieldTable

FRAME_BYTES = 1000
ENTRY_BYTES = 1250
"""A little more than what a batch of ``FRAME_BYTES`` takes in memory."""


def batch(kind: str = "sample", count: int = 10) -> Batch:
    return Batch(0, kind, 1, 0, count, bytes(FRAME_BYTES))  # type: ignore[arg-type]  # kind is one


def event(text: str = "") -> Event:
    return Event(0, 1, "mark", None, text)


def make(tmp_path: Path, max_bytes: int = 1 << 20, spool_bytes: int = 0) -> Outbox:
    losses = Losses()
    spool = Spool(str(tmp_path / "spools"), "stream", spool_bytes, losses) if spool_bytes else None
    return Outbox(max_bytes, spool, losses, Notices())


def take_all(outbox: Outbox) -> list[Entry]:
    entries: list[Entry] = []
    while (entry := outbox.next_unsent()) is not None:
        entries.append(entry)
    return entries


def deliver_all(outbox: Outbox) -> list[int]:
    """Take everything, each message acknowledged before the next: nothing piles up in flight."""
    delivered: list[int] = []
    while (entry := outbox.next_unsent()) is not None:
        assert outbox.acked(entry.seq)
        delivered.append(entry.seq)
    return delivered


def seqs(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


def test_messages_are_numbered_from_one_in_the_order_of_put(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    for text in ("a", "b", "c"):
        outbox.put(event(text))
    entries = take_all(outbox)
    messages = [decode_agent_message(entry.frame) for entry in entries]
    assert [(m.seq, m.text) for m in messages if isinstance(m, Event)] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


def test_a_message_is_given_out_once_and_is_gone_when_acknowledged(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.put(batch())
    outbox.put(batch())
    assert seqs(take_all(outbox)) == [1, 2]
    assert outbox.unacked_bytes == outbox.memory_bytes > 2 * FRAME_BYTES
    assert outbox.queued_messages == 2
    assert outbox.acked(1)
    assert outbox.first_seq == 2
    emptiness = [outbox.is_empty, outbox.acked(2), outbox.is_empty]
    assert emptiness == [False, True, True]
    assert outbox.memory_bytes == outbox.unacked_bytes == outbox.queued_messages == 0
    assert outbox.first_seq == 3


def test_after_a_rewind_what_is_not_acknowledged_comes_again_first(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    for _ in range(3):
        outbox.put(batch())
    take_all(outbox)
    outbox.acked(1)
    outbox.put(batch())
    outbox.rewind()
    assert outbox.unacked_bytes == 0
    assert outbox.first_seq == 2
    assert seqs(take_all(outbox)) == [2, 3, 4]


def test_an_acknowledgement_after_a_rewind_spares_the_second_sending(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    for _ in range(3):
        outbox.put(batch())
    take_all(outbox)
    outbox.rewind()
    assert outbox.acked(2)  # the welcome of the next connection
    assert seqs(take_all(outbox)) == [3]


def test_what_was_never_sent_cannot_be_acknowledged(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.put(batch())
    assert not outbox.acked(1)
    take_all(outbox)
    assert not outbox.acked(2)
    assert outbox.acked(1)


def test_without_a_spool_the_oldest_is_dropped_and_counted(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=3 * ENTRY_BYTES)
    outbox.put(batch("sample", count=7))
    outbox.put(batch("step", count=5))
    outbox.put(event("x" * FRAME_BYTES))
    for _ in range(3):
        outbox.put(batch())
        assert outbox.memory_bytes <= 3 * ENTRY_BYTES
    lost = outbox.losses.message()
    assert (lost.samples, lost.steps, lost.messages) == (
        {"outbox_full": 7},
        {"outbox_full": 5},
        {"outbox_full": 1},
    )
    assert lost.last_dropped_seq == 3
    assert outbox.first_seq == 4
    assert seqs(take_all(outbox)) == [4, 5, 6]


def test_what_is_on_its_way_is_not_dropped(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=3 * ENTRY_BYTES)
    outbox.put(batch())
    assert outbox.next_unsent() is not None
    for _ in range(4):
        outbox.put(batch())
    assert outbox.losses.message().last_dropped_seq == 3
    outbox.rewind()
    assert seqs(take_all(outbox)) == [1, 4, 5]


def test_spill_moves_the_oldest_to_disk_and_they_come_back_in_order(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=8 * ENTRY_BYTES, spool_bytes=1 << 20)
    for _ in range(30):
        outbox.put(batch())
        outbox.spill()
        assert outbox.memory_bytes <= 5 * ENTRY_BYTES
    assert outbox.spool_bytes > 20 * FRAME_BYTES
    assert outbox.first_seq == 1
    assert deliver_all(outbox) == list(range(1, 31))
    assert outbox.losses.version == 0
    assert outbox.spool_bytes == 0


def test_memory_below_half_of_the_bound_never_touches_the_disk(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=8 * ENTRY_BYTES, spool_bytes=1 << 20)
    for _ in range(3):
        outbox.put(batch())
        outbox.spill()
    assert not (tmp_path / "spools").exists()


def test_a_full_spool_drops_its_oldest_and_keeps_the_newest(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=8 * ENTRY_BYTES, spool_bytes=16 * FRAME_BYTES)
    for _ in range(100):
        outbox.put(batch(count=1))
        outbox.spill()
    left = deliver_all(outbox)
    lost = outbox.losses.message()
    assert left == list(range(left[0], 101))
    assert lost.samples == {"spool_full": left[0] - 1}
    assert lost.last_dropped_seq == left[0] - 1


def test_a_spool_that_cannot_be_written_costs_the_oldest_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "spools").write_text("a file where the folder should be")
    notices = Notices()
    losses = Losses()
    spool = Spool(str(tmp_path / "spools"), "stream", 1 << 20, losses)
    outbox = Outbox(4 * ENTRY_BYTES, spool, losses, notices)
    for _ in range(10):
        outbox.put(batch(count=1))
        outbox.spill()
    assert notices.texts() != []
    assert losses.message().samples == {"outbox_full": 10 - 4}
    assert seqs(take_all(outbox)) == [7, 8, 9, 10]


def test_a_put_from_inside_a_garbage_collection_neither_hangs_nor_gets_lost(
    tmp_path: Path,
) -> None:
    outbox = make(tmp_path)

    class Puts:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            outbox.put(event("from a finalizer"))

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Puts()
            outbox.put(event("from the loop"))
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert seqs(take_all(outbox)) == list(range(1, 401))


def test_a_put_while_the_lock_is_held_by_its_own_thread_returns(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    done = threading.Event()

    def put_under_lock() -> None:
        with outbox._lock:  # what a finalizer finds that runs in the middle of next_unsent
            outbox.put(event())
        done.set()

    threading.Thread(target=put_under_lock, daemon=True).start()
    assert done.wait(20)
    assert outbox.wakeup.wait(0)
    assert seqs(take_all(outbox)) == [1]


def test_many_threads_put_and_every_message_gets_its_own_number(tmp_path: Path) -> None:
    outbox = make(tmp_path, max_bytes=64 << 20)

    def put_many() -> None:
        for _ in range(500):
            outbox.put(event())

    threads = [threading.Thread(target=put_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    taken: list[Entry] = []
    while any(thread.is_alive() for thread in threads):
        taken += take_all(outbox)
    taken += take_all(outbox)
    assert seqs(taken) == list(range(1, 2001))


def test_a_message_that_the_server_would_not_take_is_counted(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.put(batch(count=3))
    entry = outbox.next_unsent()
    assert entry is not None
    outbox.drop_sent(entry, "too_large")
    assert outbox.is_empty
    assert outbox.losses.message().samples == {"too_large": 3}


@pytest.mark.parametrize("kind", ["sample", "step"])
def test_rows_lost_before_the_outbox_are_counted_under_their_reason(
    tmp_path: Path, kind: str
) -> None:
    outbox = make(tmp_path)
    outbox.count_lost("row_buffer_full", **{f"{kind}s": 4})
    lost = outbox.losses.message()
    assert getattr(lost, f"{kind}s") == {"row_buffer_full": 4}
    assert lost.last_dropped_seq == 0


def test_a_field_table_is_known_by_its_number(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    table = FieldTable(3, [])
    outbox.declare(table)
    assert outbox.tables == {3: table}


def test_rows_wait_until_they_are_to_be_sent_and_nothing_else_does(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    for _ in range(3):
        outbox.put(batch())
    assert not outbox.wakeup.wait(0)
    outbox.send()
    assert outbox.wakeup.wait(0)
    assert not outbox.wakeup.wait(0)  # once for all of them
    outbox.put(event())
    assert outbox.wakeup.wait(0)
    assert len(take_all(outbox)) == 4
