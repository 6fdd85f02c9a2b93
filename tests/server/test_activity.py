from __future__ import annotations

import asyncio
from typing import Any

import pytest

from vramscope_server.activity import Activity, ActivityMonitor


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_it_is_idle_since_the_last_request() -> None:
    clock = Clock()
    activity = Activity(lambda: 0, clock)
    clock.now_s = 5
    assert activity.idle_s() == 5
    activity.note()
    clock.now_s = 6
    assert activity.idle_s() == 1


def test_a_connection_keeps_it_awake() -> None:
    clock, connections = Clock(), [1]
    activity = Activity(lambda: connections[0], clock)
    clock.now_s = 100
    assert activity.idle_s() == 0
    connections[0] = 0
    clock.now_s = 103
    assert activity.idle_s() == 3


@pytest.mark.parametrize(
    ("scope", "idle_s"),
    [
        ({"type": "http", "path": "/api/v1/runs"}, 0),
        ({"type": "websocket", "path": "/ws/live"}, 0),
        ({"type": "http", "path": "/healthz"}, 9),
        ({"type": "http", "path": "/readyz"}, 9),
        ({"type": "lifespan"}, 9),
    ],
)
def test_requests_count_and_health_checks_do_not(scope: dict[str, Any], idle_s: float) -> None:
    clock, served = Clock(), []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        served.append(scope)

    async def unused(*_: Any) -> Any:
        raise AssertionError

    activity = Activity(lambda: 0, clock)
    clock.now_s = 9
    asyncio.run(ActivityMonitor(app, activity)(scope, unused, unused))
    assert activity.idle_s() == idle_s
    assert served == [scope]
