from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from tests.support.streams import open_store
from vramscope_server.store import events
from vramscope_server.store.events import EventFilter


def test_events_by_time_kind_and_limit(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def add_ten(connection: Connection) -> None:
        for n in range(10):
            rank = None if n % 2 else n
            events.add_event(
                connection, "run-a", rank, 100 - n, f"kind-{n % 3}", n, "text", {"n": n}
            )

    store.write_now(add_ten)
    store.write_now(lambda c: events.add_event(c, "run-b", 0, 50, "other"))
    listed = store.read_now(lambda c: events.list_events(c, "run-a", limit=3))
    assert [event["time_ns"] for event in listed] == [98, 99, 100]  # the last three, oldest first
    assert listed[1] == {
        "time_ns": 99, "rank": None, "step": 1, "kind": "kind-1", "text": "text", "data": {"n": 1},
    }  # fmt: skip

    def listed_by(chosen: EventFilter) -> list[dict[str, Any]]:
        return store.read_now(lambda c: events.list_events(c, "run-a", chosen))

    span = listed_by(EventFilter(start_ns=93, end_ns=96))
    assert [event["time_ns"] for event in span] == [93, 94, 95, 96]
    assert {event["kind"] for event in listed_by(EventFilter(kind="kind-0"))} == {"kind-0"}
    others = {event["kind"] for event in listed_by(EventFilter(without="kind-0"))}
    assert others == {"kind-1", "kind-2"}
    of_rank = listed_by(EventFilter(rank=4))
    assert {event["rank"] for event in of_rank} == {4, None}  # what happened to all is everybody's
    assert sum(event["rank"] == 4 for event in of_rank) == 1
    store.close()


def test_large_events_are_not_all_answered_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    text = "x" * (events.MAX_ANSWER_BYTES // 4)

    def add_six(connection: Connection) -> None:
        for n in range(6):
            events.add_event(connection, "run-a", 0, n, "mark", text=text)

    store.write_now(add_six)
    listed = store.read_now(lambda c: events.list_events(c, "run-a"))
    assert [event["time_ns"] for event in listed] == [3, 4, 5]  # the newest, and one at least
    store.close()
