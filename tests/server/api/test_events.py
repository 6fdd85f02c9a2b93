from __future__ import annotations

from tests.support.server_app import ServerApp

PATH = "/api/v1/runs/train/events"


def test_events_in_order_and_the_last_when_there_are_too_many(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.event("attach", "attached")
        agent.event("mark", "one", n=1)
        agent.wait_acked()
        events = server.get(PATH)["events"]
        assert [event["kind"] for event in events] == ["attach", "mark"]
        assert (events[1]["text"], events[1]["data"], events[1]["rank"]) == ("one", {"n": 1}, 0)
        assert [e["kind"] for e in server.get(PATH, limit=1)["events"]] == ["mark"]
        assert [e["text"] for e in server.get(PATH, kind="attach")["events"]] == ["attached"]
        assert [e["kind"] for e in server.get(PATH, without="attach")["events"]] == ["mark"]
        assert server.get(PATH, rank=1)["events"] == []
        assert server.get(PATH, end_ns=events[0]["time_ns"])["events"] == events[:1]


def test_what_was_expected_is_said(server: ServerApp) -> None:
    with server.agent():
        assert "limit: expected" in server.get_error(PATH, 422, limit=0)["message"]
