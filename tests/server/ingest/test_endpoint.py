from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from tests.support.asgi_socket import WAIT_S
from tests.support.ingest_bench import (
    TOKEN,
    Bench,
    ack_of,
    open_stream,
    receive,
    refusal,
    running_bench,
    send,
)
from tests.support.streams import (
    FIELDS,
    START_NS,
    made_batches,
    made_columns,
    registration,
)
from vramscope_protocol.codec import encode
from vramscope_protocol.messages import (
    Ack,
    AgentStatus,
    Auth,
    Batch,
    Command,
    CommandUpdate,
    Event,
    FieldTable,
    Goodbye,
    Hello,
    Lost,
    Message,
)
from vramscope_server.ingest.endpoint import IngestLimits
from vramscope_server.store import events
from vramscope_server.store.writer import WriterLimits


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_a_stream_is_stored_published_and_acked(tmp_path: Path) -> None:
    async def test() -> None:
        columns = made_columns(100)
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            welcome = await open_stream(socket)
            assert (welcome.last_seq, welcome.software) == (0, "test")
            send(
                socket,
                *made_batches(columns),
                Event(11, START_NS, "mark", 3, "hello", {"a": 1}),
                AgentStatus(10.0, 0.001),
            )
            await ack_of(socket, 11)
            series = bench.store.series("run-a", 0, ["share"], points=1000)
            assert series.time_ns.tolist() == columns["time_ns"].tolist()
            assert sum(len(rows) for rows in bench.neighbours.samples) == 100
            assert bench.neighbours.events == [
                {"time_ns": START_NS, "rank": 0, "step": 3, "kind": "mark", "text": "hello",
                 "data": {"a": 1}}
            ]  # fmt: skip
            assert bench.neighbours.connections == [("connected", 0)]
            shown = bench.registry.run("run-a")
            assert shown is not None
            rank = shown["ranks"][0]
            assert (rank["state"], rank["connected"]) == ("live", True)
            assert (rank["samples_received"], rank["samples_lost"]) == (100, 0)
            assert rank["status"]["rate_hz"] == 10.0

    run(test())


def test_what_is_sent_again_after_a_reconnect_is_not_published_again(tmp_path: Path) -> None:
    async def test() -> None:
        batches = list(made_batches(made_columns(60)))
        async with running_bench(tmp_path) as bench:
            async with bench.socket() as socket:
                await open_stream(socket)
                send(socket, *batches[:4])
                await ack_of(socket, 4)
            async with bench.socket() as socket:
                welcome = await open_stream(socket)
                assert welcome.last_seq == 4
                send(socket, *batches[2:], Event(7, START_NS, "mark"))
                await ack_of(socket, 7)
            assert sum(len(rows) for rows in bench.neighbours.samples) == 60
            shown = bench.registry.run("run-a") or {}
            assert shown["ranks"][0]["samples_received"] == 60
            assert shown["ranks"][0]["restarts"] == 0
            assert len(bench.store.series("run-a", 0, ["step"], points=1000).time_ns) == 60

    run(test())


def test_a_goodbye_is_acked_and_closed_in_peace(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            send(socket, *made_batches(made_columns(10)), Goodbye(2, START_NS + 9, "exit", 3))
            await ack_of(socket, 2)
            assert await receive(socket) is None
            assert socket.close_code == 1000
            await socket.wait_ended()
            shown = bench.registry.run("run-a") or {}
            assert (shown["state"], shown["ended_ns"]) == ("ended", START_NS + 9)
            assert shown["ranks"][0]["exit_code"] == 3
            assert bench.neighbours.connections == [("connected", 0), ("disconnected", 0)]

    run(test())


def test_commands_go_out_and_their_updates_come_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench:
            assert not bench.directory.send_command("run-a", 0, Command("c1", "stats"))
            async with bench.socket() as socket:
                await open_stream(socket)
                assert bench.directory.send_command("run-a", 0, Command("c1", "stats"))
                assert await receive(socket) == Command("c1", "stats")
                send(socket, CommandUpdate(1, "c1", "done", START_NS))
                await ack_of(socket, 1)
                assert [update.id for update in bench.neighbours.updates] == ["c1"]

    run(test())


def test_a_second_connection_of_a_stream_replaces_the_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as first:
            await open_stream(first)
            async with bench.socket() as second:
                await open_stream(second)
                assert await refusal(first) == ("replaced", 4409)
                await first.wait_ended()
                assert bench.registry.connected_ranks("run-a") == [0]
                send(second, Event(1, START_NS, "mark"))
                await ack_of(second, 1)
            assert bench.neighbours.connections[-1] == ("disconnected", 0)

    run(test())


def test_a_stream_that_fails_while_it_registers_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            bench.store.has_failed = Mock(return_value=True)  # type: ignore[method-assign]  # race
            await open_stream(socket)
            assert await refusal(socket) == ("internal", 4500)

    run(test())


def opening(*messages: Message) -> list[bytes]:
    return [encode(message) for message in messages]


REFUSED: dict[str, tuple[list[bytes], tuple[str, int]]] = {
    "wrong token": (opening(Hello(1), Auth("no")), ("auth_failed", 4401)),
    "wrong scope": (opening(Hello(1), Auth("viewer")), ("forbidden", 4403)),
    "newer protocol": (opening(Hello(2)), ("version_mismatch", 4426)),
    "no hello": (opening(Auth(TOKEN)), ("unexpected_message", 4422)),
    "garbage": ([b"\xc1\xff\x00"], ("bad_message", 4400)),
    "no msgpack map": ([b"GET / HTTP/1.1"], ("bad_message", 4400)),
    "oversized": ([b"x" * ((1 << 20) + 1)], ("too_large", 4413)),
    "deeply nested": ([b"\x81" * 100_000], ("bad_message", 4400)),
    "negative rank": (
        opening(Hello(1), Auth(TOKEN), registration(rank=-1)), ("bad_message", 4400),
    ),
    "a path as run": (
        opening(Hello(1), Auth(TOKEN), registration(run="../etc")), ("bad_message", 4400),
    ),
    "no name": (opening(Hello(1), Auth(TOKEN), registration(name="")), ("bad_message", 4400)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_opening_that_does_not_do_is_refused_with_its_reason(tmp_path: Path, case: str) -> None:
    frames, expected = REFUSED[case]

    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as other:
            await open_stream(other, registration("stream-b", rank=1))
            async with bench.socket() as socket:
                for frame in frames:
                    socket.send_bytes(frame)
                assert await refusal(socket) == expected
            send(other, Event(1, START_NS, "still here"))
            await ack_of(other, 1)

    run(test())


BACKWARDS = made_columns(10)
BACKWARDS["time_ns"] = BACKWARDS["time_ns"][::-1].copy()

BAD_DATA: dict[str, tuple[Callable[[], list[Message]], str]] = {
    "text of a step": (lambda: [Event(1, START_NS, "x" * 2000)], "bad_message"),
    "no kind": (lambda: [Event(1, START_NS, "")], "bad_message"),
    "a step beyond int64": (lambda: [Event(1, START_NS, "mark", 2**63)], "bad_message"),
    "data without JSON": (
        lambda: [Event(1, START_NS, "mark", data={"x": msgspec.msgpack.Ext(1, b"")})],
        "bad_message",
    ),
    "seq 0": (lambda: [Event(0, START_NS, "mark")], "bad_message"),
    "time goes back in a batch": (lambda: list(made_batches(BACKWARDS)), "bad_message"),
    "time goes back": (
        lambda: [
            *made_batches(made_columns(10)),
            *made_batches(made_columns(10, start_ns=START_NS - 10**12), first_seq=2),
        ],
        "bad_message",
    ),
    "negative loss": (lambda: [Lost(samples={"full": -1})], "bad_message"),
    "a batch of an unknown table": (lambda: [Batch(1, "sample", 9, 0, 1, b"")],
                                    "unexpected_message"),
    "too many field tables": (
        lambda: [FieldTable(n, FIELDS[:2]) for n in range(2, 70)], "bad_message",
    ),
    "hello again": (lambda: [Hello(1)], "unexpected_message"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_DATA)
def test_a_stream_that_sends_what_cannot_be_is_ended_alone(tmp_path: Path, case: str) -> None:
    messages, code = BAD_DATA[case]

    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as other:
            await open_stream(other, registration("stream-b", rank=1))
            async with bench.socket() as socket:
                await open_stream(socket)
                send(socket, *messages())
                assert (await refusal(socket))[0] == code
            send(other, Event(1, START_NS, "still here"))
            await ack_of(other, 1)

    run(test())


def test_a_text_frame_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            socket.send_text("hello")
            assert await refusal(socket) == ("bad_message", 4400)

    run(test())


def test_a_stream_cannot_change_its_rank(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench:
            async with bench.socket() as socket:
                await open_stream(socket)
            async with bench.socket() as socket:
                send(socket, Hello(1), Auth(TOKEN), registration(rank=1))
                assert await refusal(socket) == ("bad_message", 4400)

    run(test())


def test_a_page_of_another_origin_is_refused_before_the_handshake(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench:
            async with bench.socket(headers={"origin": "http://evil.example"}) as socket:
                assert not socket.accepted
            async with bench.socket(headers={"origin": "http://127.0.0.1:8470"}) as socket:
                await open_stream(socket)

    run(test())


def test_a_silent_peer_is_sent_away(tmp_path: Path) -> None:
    async def test() -> None:
        limits = IngestLimits(handshake_s=0.05)
        async with running_bench(tmp_path, limits) as bench, bench.socket() as socket:
            send(socket, Hello(1))
            assert await refusal(socket) == ("timeout", 4408)

    run(test())


def test_an_agent_too_many_is_sent_away(tmp_path: Path) -> None:
    async def test() -> None:
        limits = IngestLimits(max_connections=1)
        async with running_bench(tmp_path, limits) as bench, bench.socket() as first:
            await open_stream(first)
            async with bench.socket() as second:
                assert (await refusal(second))[0] == "internal"
            assert bench.ingest.connection_count == 1

    run(test())


def test_an_agent_that_does_not_read_is_disconnected(tmp_path: Path) -> None:
    async def test() -> None:
        limits = IngestLimits(send_timeout_s=0.05)
        async with running_bench(tmp_path, limits) as bench:
            async with bench.socket(reading=False) as socket:
                send(socket, Hello(1), Auth(TOKEN), registration())
                await socket.wait_ended()
            assert bench.ingest.connection_count == 0

    run(test())


def test_a_full_store_stops_the_reading_and_drops_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        writer = WriterLimits(commit_interval_s=0.02, queue_messages=3, retry_s=0.02)
        limits = IngestLimits(writer=writer)
        async with running_bench(tmp_path, limits) as bench, bench.socket() as socket:
            await open_stream(socket)
            await bench.store.write(lambda c: c.exec_driver_sql("PRAGMA busy_timeout=10").close())
            blocker = sqlite3.connect(tmp_path / "vramscope.db", isolation_level=None)
            blocker.execute("BEGIN IMMEDIATE")
            columns = made_columns(200)
            send(socket, *made_batches(columns))
            await until(lambda: not bench.store.health().ok)
            assert socket.unread >= 20 - 3 - 2  # the queue, and the one that waits for it
            blocker.execute("ROLLBACK")
            blocker.close()
            await ack_of(socket, 20)
            series = bench.store.series("run-a", 0, ["step"], points=1000)
            assert series.time_ns.tolist() == columns["time_ns"].tolist()

    run(test())


async def until(condition: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), WAIT_S)


def test_stop_commits_acks_and_says_why(tmp_path: Path) -> None:
    async def test() -> None:
        limits = IngestLimits(writer=WriterLimits(commit_interval_s=60.0))
        bench = Bench(tmp_path, limits)
        await bench.ingest.start()
        async with bench.socket() as socket, bench.socket() as unopened:
            await open_stream(socket)
            send(socket, Event(1, START_NS, "mark"))
            await until(lambda: bench.store.health().pending_messages == 1)
            stopping = asyncio.create_task(bench.ingest.stop())
            assert await receive(socket) == Ack(1)
            assert await refusal(socket) == ("shutting_down", 4503)
            assert await refusal(unopened) == ("shutting_down", 4503)
            await stopping
            assert bench.ingest.connection_count == 0
            async with bench.socket() as late:
                assert await refusal(late) == ("shutting_down", 4503)
        assert len(bench.store.read_now(lambda c: events.list_events(c, "run-a"))) == 1
        bench.store.close()

    run(test())


def test_a_restarted_server_knows_its_runs(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            send(socket, *made_batches(made_columns(50)), Lost(samples={"full": 4}))
            await ack_of(socket, 5)
        async with running_bench(tmp_path) as bench:
            shown = bench.registry.run("run-a")
            assert shown is not None
            rank = shown["ranks"][0]
            assert (rank["connected"], rank["samples_received"]) == (False, 50)
            assert rank["step"] == 16
            assert shown["name"] == "training"

    run(test())


def test_a_process_that_is_gone_is_lost_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running_bench(tmp_path) as bench:
            bench.alive_pids.add(4321)
            async with bench.socket() as socket:
                await open_stream(socket)
                bench.alive_pids.clear()
            shown = bench.registry.run("run-a")
            assert shown is not None
            assert shown["state"] == "lost"

    run(test())
