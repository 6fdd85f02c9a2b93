"""Who looks at which map, what they are handed, and what the agents are asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from msgspec import structs

from tests.support.made_segments import segment
from tests.support.recorded_map import MapOfLooks
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import MapWanted
from vramscope_server.maps import maps as maps_module
from vramscope_server.maps.maps import LOOK_S, WATCH_S, Maps

HERE = 0x7F0000000000
FULL = MapWanted(WATCH_S, full=True)
MORE = MapWanted(WATCH_S)


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Server:
    def __init__(self, max_bytes: int = 1 << 24) -> None:
        self.asked: list[tuple[str, int, MapWanted]] = []
        self.maps = Maps(lambda *wish: self.asked.append(wish), max_bytes)


class Reader:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    def __call__(self, body: bytes, key: str | None) -> None:
        self.events.append(json.loads(body))
        self.keys.append(key)


@on_a_loop
async def test_the_first_reader_makes_the_agent_begin_and_the_last_lets_it_end() -> None:
    server = Server()
    first, second = Reader(), Reader()
    one = server.maps.follow("r", 3, first)
    assert server.asked == [("r", 3, FULL)]
    source = MapOfLooks()
    server.maps.take("r", 3, source.frame([segment(HERE, "a1")]))
    two = server.maps.follow("r", 3, second)
    assert len(server.asked) == 1, "the map is there and goes on"
    server.maps.take("r", 3, source.frame([segment(HERE, "f1")]))
    assert [event["base"] for event in first.events] == [0, 1]
    assert [event["base"] for event in second.events] == [0, 1]
    assert {event["kind"] for event in first.events} == {"map"}
    assert first.events[0]["rank"] == 3
    assert set(first.keys) == {"map 3"}
    server.maps.unfollow(one)
    server.maps.unfollow(one)
    server.maps.take("r", 3, source.frame([segment(HERE, "a1")]))
    assert (len(first.events), len(second.events)) == (2, 3)
    server.maps.unfollow(two)
    assert server.maps._audiences == {}


@on_a_loop
async def test_the_wish_is_renewed_while_somebody_looks() -> None:
    server = Server()
    renewed = asyncio.Event()

    def ask(*wish: Any) -> None:
        server.asked.append(wish)
        if len(server.asked) >= 3:
            renewed.set()

    server.maps = Maps(ask, 1 << 20)
    before = maps_module.RENEW_S
    maps_module.RENEW_S = 0.01  # type: ignore[misc]
    try:
        follower = server.maps.follow("r", 0, Reader())
        await asyncio.wait_for(renewed.wait(), 10)
    finally:
        maps_module.RENEW_S = before  # type: ignore[misc]
    assert server.asked[:3] == [("r", 0, FULL), ("r", 0, MORE), ("r", 0, MORE)]
    server.maps.unfollow(follower)
    count = len(server.asked)
    await asyncio.sleep(0.05)
    assert len(server.asked) == count
    server.maps.close()


@on_a_loop
async def test_an_agent_that_comes_back_is_told_that_somebody_looks() -> None:
    server = Server()
    server.maps.rank_connected("r", 0)
    assert server.asked == []
    server.maps.follow("r", 0, Reader())
    server.maps.rank_connected("r", 0)
    server.maps.rank_connected("r", 1)
    assert server.asked == [("r", 0, FULL), ("r", 0, FULL)]
    server.maps.close()


@on_a_loop
async def test_a_broken_chain_asks_for_the_whole_if_somebody_looks() -> None:
    server = Server()
    source = MapOfLooks()
    source.frame([segment(HERE, "a1")])
    delta = source.frame([segment(HERE, "f1")])
    server.maps.take("r", 0, delta)
    assert (server.asked, server.maps.whole("r", 0)) == ([], None)
    reader = Reader()
    server.maps.follow("r", 0, reader)
    server.maps.take("r", 0, delta)
    assert server.asked == [("r", 0, FULL), ("r", 0, FULL)]
    assert reader.events == []
    server.maps.close()


@on_a_loop
async def test_where_a_map_comes_on_request_a_new_reader_is_the_request() -> None:
    server = Server()
    source = MapOfLooks()
    source.rate_hz = 0.0
    server.maps.follow("r", 0, Reader())
    server.maps.take("r", 0, source.frame([segment(HERE, "a1")]))
    server.maps.follow("r", 0, Reader())
    assert server.asked == [("r", 0, FULL), ("r", 0, FULL)]
    server.maps.close()


def test_the_map_that_changed_longest_ago_is_forgotten_first() -> None:
    server = Server(max_bytes=8000)
    frame = MapOfLooks().frame([segment(HERE, "a1 a1 a1")])
    for rank in range(3):
        server.maps.take("r", rank, frame)
    server.maps.take("r", 0, frame)
    server.maps.take("r", 3, frame)
    known = [rank for rank in range(4) if server.maps.whole("r", rank) is not None]
    assert known == [0, 2, 3]


def test_a_frame_that_cannot_be_is_refused_and_the_map_stays() -> None:
    server = Server()
    frame = MapOfLooks().frame([segment(HERE, "a1")])
    server.maps.take("r", 0, frame)
    with pytest.raises(ProtocolError):
        server.maps.take("r", 0, structs.replace(frame, blocks=b"", number=2))
    whole = server.maps.whole("r", 0)
    assert whole is not None
    assert (whole["rank"], whole["number"]) == (0, 1)


@on_a_loop
async def test_one_look_is_asked_for_unless_somebody_looks_anyway() -> None:
    server = Server()
    assert server.maps.parts("r", 0) is None
    server.maps.want_look("r", 0)
    assert server.asked == [("r", 0, MapWanted(LOOK_S, full=True))]
    server.maps.follow("r", 1, Reader())
    server.maps.want_look("r", 1)
    assert server.asked[1:] == [("r", 1, FULL)]
    server.maps.take("r", 0, MapOfLooks().frame([segment(HERE, "a1 f2")]))
    parts = server.maps.parts("r", 0)
    assert parts is not None
    assert [row[0] for row, _ in parts.segments] == [HERE]
    server.maps.close()
