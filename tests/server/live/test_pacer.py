from __future__ import annotations

import asyncio

from vramscope_server.live.pacer import Pacer

INTERVAL_S = 0.05


def test_a_burst_is_served_at_once_and_once_more_when_the_interval_is_over() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        times: list[float] = []
        second = asyncio.Event()

        def act() -> None:
            times.append(loop.time())
            if len(times) == 2:
                second.set()

        pacer = Pacer(INTERVAL_S, act)
        for _ in range(5):
            pacer.request()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(times) == 1
        for _ in range(5):
            pacer.request()
        await asyncio.wait_for(second.wait(), 30)
        return times

    first_s, second_s = asyncio.run(scenario())
    assert second_s - first_s >= INTERVAL_S


def test_a_cancelled_request_is_not_served() -> None:
    async def scenario() -> list[int]:
        served: list[int] = []
        pacer = Pacer(0.0, lambda: served.append(1))
        pacer.request()
        pacer.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return served

    assert asyncio.run(scenario()) == []
