from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.made_segments import segment
from tests.support.recorded_map import MapOfLooks
from tests.support.server_rows import make_rows
from vramscope_protocol.errors import (
    BAD_MESSAGE,
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    TOO_LARGE,
    ProtocolError,
)
from vramscope_protocol.live import MAX_REQUEST_BYTES
from vramscope_protocol.messages import MapWanted
from vramscope_server.auth.principal import VIEW, Principal
from vramscope_server.live.hub import Hub
from vramscope_server.live.session import LiveSession
from vramscope_server.maps.maps import WATCH_S, Maps
from vramscope_server.settings import Limits


class FakeRegistry:
    def runs(self) -> list[dict[str, Any]]:
        return [{"id": "r1", "name": "train"}]

    def run(self, run_id: str) -> dict[str, Any] | None:
        return {"id": "r1", "ranks": []} if run_id == "r1" else None

    def find(self, run: str) -> str | None:
        return "r1" if run in {"r1", "train"} else None


class Page:
    """A session on an event loop of its own, without a socket."""

    def __init__(self, limits: Limits | None = None, run_id: str | None = None) -> None:
        self.frames: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.hub = Hub(FakeRegistry(), limits or Limits())
        self.asked: list[MapWanted] = []
        self.maps = Maps(lambda run_id, rank, wanted: self.asked.append(wanted), 1 << 20)
        self.session = LiveSession(
            self.hub,
            FakeRegistry(),
            self._put,
            limits or Limits(),
            Principal("x", frozenset({VIEW}), run_id=run_id),
            self.maps,
        )

    def _put(self, frame: bytes, key: str | None) -> None:
        self.frames.append(json.loads(frame))
        self.keys.append(key)

    def ask(self, **request: Any) -> list[dict[str, Any]]:
        """Send one request; the frames that came of it."""

        async def receive() -> None:
            self.session.receive(json.dumps(request))

        before = len(self.frames)
        asyncio.run(receive())
        return self.frames[before:]


def error_code(frames: list[dict[str, Any]]) -> str:
    assert [frame["ok"] for frame in frames] == [False]
    code: str = frames[0]["error"]["code"]
    return code


def test_ping_is_answered() -> None:
    assert Page().ask(type="ping", id=5) == [{"type": "result", "id": 5, "ok": True}]


def test_a_subscription_is_answered_first_and_then_told_the_present_state() -> None:
    page = Page()
    assert page.ask(type="subscribe_run", id=3, run="train", fields=["a"]) == [
        {"type": "result", "id": 3, "ok": True},
        {"type": "event", "id": 3, "event": {"kind": "run", "run": {"id": "r1", "ranks": []}}},
    ]
    assert page.ask(type="subscribe_runs", id=4) == [
        {"type": "result", "id": 4, "ok": True},
        {"type": "event", "id": 4, "event": {"kind": "runs", "runs": FakeRegistry().runs()}},
    ]
    # Each subscription replaces only its own waiting state.
    assert page.keys == [None, "3 run", None, "4 runs"]


def test_events_carry_the_id_of_their_subscription_until_it_ends() -> None:
    page = Page()
    rows = make_rows(time_ns=[1], step=[1], a=[9])
    page.ask(type="subscribe_run", id=3, run="r1", fields=["a"])
    page.hub.publish_samples("r1", 0, rows)
    assert page.frames[-1]["id"] == 3
    assert page.frames[-1]["event"]["columns"]["a"] == [9]
    assert page.ask(type="unsubscribe", id=4, subscription=3)[0]["ok"]
    count = len(page.frames)
    page.hub.publish_samples("r1", 0, rows)
    assert len(page.frames) == count


def test_close_ends_every_subscription() -> None:
    page = Page()
    page.ask(type="subscribe_run", id=3, run="r1", fields=["a"])
    page.session.close()
    count = len(page.frames)
    page.hub.publish_event("r1", {"kind": "oom"})
    assert len(page.frames) == count


def test_what_cannot_be_done_is_answered_and_the_connection_lives_on() -> None:
    page = Page(Limits(live_subscriptions=2, live_fields=1))
    assert error_code(page.ask(type="subscribe_run", id=1, run="no", fields=[])) == NOT_FOUND
    too_many = page.ask(type="subscribe_run", id=1, run="r1", fields=["a", "b"])
    assert error_code(too_many) == BAD_REQUEST
    assert error_code(page.ask(type="unsubscribe", id=2, subscription=9)) == NOT_FOUND
    page.ask(type="subscribe_runs", id=3)
    assert error_code(page.ask(type="subscribe_runs", id=3)) == CONFLICT
    page.ask(type="subscribe_runs", id=4)
    assert error_code(page.ask(type="subscribe_runs", id=5)) == BAD_REQUEST
    assert page.ask(type="ping", id=6)[0]["ok"]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("x" * (MAX_REQUEST_BYTES + 1), TOO_LARGE),
        ("not json", BAD_MESSAGE),
        ('{"type": "subscribe_run", "id": 1}', BAD_MESSAGE),
        ('{"type": "drop_tables", "id": 1}', BAD_MESSAGE),
    ],
)
def test_what_is_no_request_ends_the_connection(frame: str, code: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        Page().session.receive(frame)
    assert refused.value.code == code


def test_a_frame_follows_its_own_run_only() -> None:
    framed = Page(run_id="r1")
    assert framed.ask(type="subscribe_run", id=1, run="train", fields=[], ranks=None)[0]["ok"]
    assert error_code(framed.ask(type="subscribe_runs", id=2)) == FORBIDDEN
    elsewhere = Page(run_id="r2")
    refused = elsewhere.ask(type="subscribe_run", id=1, run="train", fields=[], ranks=None)
    assert error_code(refused) == FORBIDDEN


def test_a_map_is_followed_with_the_run_until_the_subscription_ends() -> None:
    page = Page()
    source = MapOfLooks()

    async def follow_and_leave() -> None:
        page.maps.take("r1", 2, source.frame([segment(1 << 40, "a1")]))
        wish = {"type": "subscribe_run", "id": 3, "run": "train", "fields": [], "map": 2}
        page.session.receive(json.dumps(wish))
        assert page.asked == [MapWanted(WATCH_S, full=True)]
        page.maps.take("r1", 2, source.frame([segment(1 << 40, "f1")]))
        page.maps.take("r1", 1, MapOfLooks().frame([segment(1 << 40, "f1")]))
        page.session.receive(json.dumps({"type": "unsubscribe", "id": 4, "subscription": 3}))
        page.maps.take("r1", 2, source.frame([segment(1 << 40, "a1")]))

    asyncio.run(follow_and_leave())
    maps = [frame["event"] for frame in page.frames if frame.get("event", {}).get("kind") == "map"]
    assert [(event["rank"], event["base"]) for event in maps] == [(2, 0), (2, 1)]
    # A page that does not keep up gets the newest, and asks for the whole.
    assert page.keys.count("3 map 2") == 2


def test_closing_ends_the_wish_for_the_map() -> None:
    page = Page()

    async def follow_and_close() -> None:
        wish = {"type": "subscribe_run", "id": 3, "run": "train", "fields": [], "map": 0}
        page.session.receive(json.dumps(wish))
        page.session.close()
        page.maps.take("r1", 0, MapOfLooks().frame([segment(1 << 40, "a1")]))

    asyncio.run(follow_and_close())
    assert not any(frame.get("event", {}).get("kind") == "map" for frame in page.frames)
