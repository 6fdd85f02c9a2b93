from __future__ import annotations

import asyncio

from vramscope_server.reaper import Reaper


class FakeTransport:
    def __init__(self, closing: bool) -> None:
        self.closing = closing
        self.aborted = False
        self.left_bytes = 100

    def get_write_buffer_size(self) -> int:
        return self.left_bytes

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.aborted = True


class FakeConnection:
    def __init__(self, closing: bool = False) -> None:
        self.transport = FakeTransport(closing)


def test_only_what_has_been_closing_for_too_long_is_dropped() -> None:
    now_s = 0.0
    lives, closes, closes_later = FakeConnection(), FakeConnection(True), FakeConnection()
    connections = [lives, closes, closes_later]
    reaper = Reaper(connections, 2.0, lambda: now_s)
    assert reaper.sweep() == 0
    now_s = 1.0
    closes_later.transport.closing = True
    assert reaper.sweep() == 0
    now_s = 2.0
    assert reaper.sweep() == 1
    assert [c.transport.aborted for c in connections] == [False, True, False]


def test_a_slow_peer_that_takes_something_is_left_alone() -> None:
    now_s = 0.0
    slow = FakeConnection(True)
    reaper = Reaper([slow], 2.0, lambda: now_s)
    for _ in range(10):
        reaper.sweep()
        slow.transport.left_bytes -= 1
        now_s += 2.0
    assert not slow.transport.aborted
    reaper.sweep()
    now_s += 2.0
    assert reaper.sweep() == 1


def test_a_connection_that_has_gone_is_forgotten() -> None:
    now_s = 0.0
    connections = [FakeConnection(True)]
    reaper = Reaper(connections, 2.0, lambda: now_s)
    reaper.sweep()
    gone = connections.pop()
    now_s = 5.0
    assert reaper.sweep() == 0
    assert not gone.transport.aborted


def test_it_runs_by_itself() -> None:
    async def scenario() -> bool:
        connection = FakeConnection(True)
        task = asyncio.create_task(Reaper([connection], 0.01).run())
        deadline = asyncio.get_running_loop().time() + 5
        while not connection.transport.aborted and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.002)
        task.cancel()
        return connection.transport.aborted

    assert asyncio.run(scenario())
