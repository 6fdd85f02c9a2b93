"""A piece is stored beside the other messages, and answered when it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.support.ingest_bench import (
    ack_of,
    open_stream,
    receive,
    refusal,
    running_bench,
    send,
)
from tests.support.wire_snapshots import wire_snapshot
from vramscope_protocol.messages import Event, SnapshotAck, SnapshotChunk


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_a_piece_is_answered(tmp_path: Path) -> None:
    async def test() -> None:
        begin, _, _ = wire_snapshot()
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            send(socket, begin)
            assert await receive(socket) == SnapshotAck("s1", 1)
            assert bench.neighbours.snapshots == [begin]

    run(test())


def test_what_comes_behind_a_piece_does_not_wait_for_it(tmp_path: Path) -> None:
    async def test() -> None:
        begin, _, _ = wire_snapshot()
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            bench.neighbours.snapshots_may_be_stored.clear()
            send(socket, begin, Event(1, 1, "mark"))
            await ack_of(socket, 1)
            bench.neighbours.snapshots_may_be_stored.set()
            assert await receive(socket) == SnapshotAck("s1", 1)

    run(test())


def test_a_second_piece_before_the_answer_ends_the_connection(tmp_path: Path) -> None:
    async def test() -> None:
        begin, packed, _ = wire_snapshot()
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            bench.neighbours.snapshots_may_be_stored.clear()
            send(socket, begin, SnapshotChunk("s1", 0, packed[:10]))
            assert await refusal(socket) == ("unexpected_message", 4422)

    run(test())


def test_an_agent_that_leaves_is_not_answered(tmp_path: Path) -> None:
    async def test() -> None:
        begin, _, _ = wire_snapshot()
        async with running_bench(tmp_path) as bench:
            async with bench.socket() as socket:
                await open_stream(socket)
                bench.neighbours.snapshots_may_be_stored.clear()
                send(socket, begin)
                while not bench.neighbours.snapshots:
                    await asyncio.sleep(0)
            while bench.ingest.connection_count:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert "vramscope-snapshot" not in names

    run(test())
