from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from vramscope_protocol.errors import SHUTTING_DOWN, SLOW_READER, ProtocolError
from vramscope_server.live.connection import LiveConnection
from vramscope_server.settings import Limits


class Reader:
    """Takes frames while ``open`` is set, and remembers them."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.open = asyncio.Event()
        self.open.set()
        self.came = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        await self.open.wait()
        self.frames.append(frame)
        self.came.set()

    async def wait_for(self, count: int) -> None:
        while len(self.frames) < count:
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 30)


Scenario = Callable[[LiveConnection, Reader, "asyncio.Task[None]"], Awaitable[None]]


def run(limits: Limits, scenario: Scenario) -> None:
    async def main() -> None:
        reader = Reader()
        connection = LiveConnection(reader.send, limits)
        writer = asyncio.create_task(connection.write())
        try:
            await scenario(connection, reader, writer)
        finally:
            writer.cancel()
            await asyncio.wait({writer})
            connection.close()

    asyncio.run(main())


def test_frames_arrive_in_order() -> None:
    async def scenario(
        connection: LiveConnection, reader: Reader, _writer: asyncio.Task[None]
    ) -> None:
        for number in range(100):
            connection.put(b"%d" % number)
        await reader.wait_for(100)
        assert reader.frames == [b"%d" % number for number in range(100)]

    run(Limits(), scenario)


def test_a_waiting_frame_of_the_same_key_is_replaced_in_its_place() -> None:
    async def scenario(
        connection: LiveConnection, reader: Reader, _writer: asyncio.Task[None]
    ) -> None:
        connection.put(b"old run", "run")
        connection.put(b"samples")
        connection.put(b"new run", "run")
        await reader.wait_for(2)
        connection.put(b"newest run", "run")
        await reader.wait_for(3)
        assert reader.frames == [b"new run", b"samples", b"newest run"]

    run(Limits(), scenario)


@pytest.mark.parametrize(
    "limits", [Limits(live_queue_frames=3), Limits(live_queue_bytes=3)], ids=["frames", "bytes"]
)
def test_a_reader_that_reaches_the_hard_cap_is_cut_off(limits: Limits) -> None:
    async def scenario(
        connection: LiveConnection, reader: Reader, writer: asyncio.Task[None]
    ) -> None:
        reader.open.clear()
        for _ in range(4):
            connection.put(b"x")
        with pytest.raises(ProtocolError) as refused:
            await asyncio.wait_for(writer, 30)
        assert refused.value.code == SLOW_READER
        waiting = connection.waiting
        connection.put(b"y")
        assert connection.waiting == waiting, "frames were kept for a connection that has failed"

    run(limits, scenario)


def test_a_reader_that_stays_above_the_mark_is_cut_off() -> None:
    async def scenario(
        connection: LiveConnection, reader: Reader, writer: asyncio.Task[None]
    ) -> None:
        reader.open.clear()
        connection.put(b"taken by the writer")
        await asyncio.sleep(0)
        for _ in range(2):
            connection.put(b"x")
        with pytest.raises(ProtocolError, match="more than 1 frames behind") as refused:
            await asyncio.wait_for(writer, 30)
        assert refused.value.code == SLOW_READER

    run(Limits(live_peak_frames=1, live_peak_s=0.02), scenario)


def test_a_reader_that_catches_up_in_time_stays() -> None:
    async def scenario(
        connection: LiveConnection, reader: Reader, writer: asyncio.Task[None]
    ) -> None:
        reader.open.clear()
        for _ in range(10):
            connection.put(b"x")
        reader.open.set()
        await reader.wait_for(10)
        # Longer than the peak may last: a timer that was left running would end the connection.
        await asyncio.wait({writer}, timeout=0.1)
        connection.put(b"y")
        await reader.wait_for(11)

    run(Limits(live_peak_frames=1, live_peak_s=0.05), scenario)


def test_the_first_reason_to_end_counts() -> None:
    async def scenario(
        connection: LiveConnection, _reader: Reader, writer: asyncio.Task[None]
    ) -> None:
        connection.fail(ProtocolError(SHUTTING_DOWN, "first"))
        connection.fail(ProtocolError(SLOW_READER, "second"))
        with pytest.raises(ProtocolError, match="first"):
            await asyncio.wait_for(writer, 30)

    run(Limits(), scenario)
