from __future__ import annotations

from vramscope.notices import Notices
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope_protocol.codec import decode_agent_message
from vramscope_protocol.messages import AgentMessage, Batch, BatchKind, Event, FieldTable


def make() -> Outbox:
    return Outbox(1 << 20, None, Losses(), Notices())


def batch(kind: BatchKind, first_index: int, count: int = 2) -> Batch:
    return Batch(0, kind, 1, first_index, count, b"")


def sent(outbox: Outbox) -> list[AgentMessage]:
    found: list[AgentMessage] = []
    while (entry := outbox.next_unsent()) is not None:
        message = decode_agent_message(entry.frame)
        assert message is not None
        found.append(message)
    return found


def test_batches_are_seen_on_their_way_with_their_tables() -> None:
    current = CurrentOutbox(make())
    seen: list[Batch] = []
    current.on_batch = seen.append
    current.declare(FieldTable(1, []))
    current.put(batch("sample", 0))
    current.put(Event(0, 1, "attach"))
    assert [message.first_index for message in seen] == [0]
    assert set(current.tables) == {1}


def test_after_a_switch_rows_are_counted_from_0_in_the_other_outbox() -> None:
    old, new = make(), make()
    current = CurrentOutbox(old)
    current.declare(FieldTable(1, []))
    current.put(batch("sample", 0))
    current.switch(new)
    current.put(batch("sample", 2))
    current.put(batch("step", 7))
    current.put(batch("sample", 5))  # one row was dropped on the way
    current.put(Event(0, 1, "attach"))
    current.count_lost("row_buffer_full", samples=1)

    assert [message.first_index for message in sent(old) if isinstance(message, Batch)] == [0]
    rows = [(m.kind, m.first_index) for m in sent(new) if isinstance(m, Batch)]
    assert rows == [("sample", 0), ("step", 0), ("sample", 3)]
    assert 1 in new.tables
    assert (old.losses.message().samples, new.losses.message().samples) == (
        {},
        {"row_buffer_full": 1},
    )


def test_it_tells_what_is_queued_where_things_go_now() -> None:
    old, new = make(), make()
    current = CurrentOutbox(old)
    current.put(Event(0, 1, "attach"))
    assert current.memory_bytes == old.memory_bytes > 0
    current.switch(new)
    current.spill()
    assert (current.memory_bytes, current.spool_bytes) == (0, 0)
    assert (current.queued_messages, old.queued_messages) == (0, 1)
    assert current.losses is new.losses
