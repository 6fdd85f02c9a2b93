"""What a message of an agent costs a real server, next to a raw websockets echo of the same bytes.

    python benchmarks/bench_ingest.py [--ranks 64] [--seconds 70]

Scripted agents send what real ones do: 40 columns at 10 Hz as four batches a second, and a row a
step beside them. Three servers take the same traffic one after another: a raw ``websockets`` echo
server, the real one alone, and the real one with a page that follows every rank. CPU time is the
server process's own. Seconds below 60 may end before a chunk is sealed and cost too little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from array import array
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.stored_run import FIELDS, RATE_HZ, made_samples
from tests.support.server_process import ServerProcess
from vramscope_protocol.codec import decode_server_message, encode
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import (
    Ack,
    Auth,
    Batch,
    BatchKind,
    Error,
    FieldTable,
    Goodbye,
    Hello,
    RankInfo,
    Register,
    RunInfo,
    Welcome,
)
from vramscope_protocol.version import PROTOCOL_VERSION

BATCHES_PER_S: Final = 4
STEPS_PER_BATCH: Final = 1
SHOWN_FIELDS: Final = 12
TABLE: Final = 1
RUN_ID: Final = "0123456789ab"
CONNECT: Final[dict[str, Any]] = {"compression": None, "max_size": None, "proxy": None}
ECHO: Final = """
import asyncio
from websockets.asyncio.server import serve
async def echo(connection):
    async for frame in connection:
        await connection.send(frame)
async def main():
    async with serve(echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""


class Usage(NamedTuple):
    """What one server used for the traffic of one phase."""

    messages: int
    samples: int
    cpu_s: float
    rss_bytes: int
    ack_ms: list[float]


def cpu_s(pid: int) -> float:
    """User and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_bytes(pid: int) -> int:
    """Memory that a process has resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Agent:
    """One rank: makes its frames as it sends them, and times their acks."""

    def __init__(self, rank: int, world_size: int, seconds: int) -> None:
        self._register = Register(
            uuid.uuid4().hex, RunInfo(RUN_ID, "bench", world_size), RankInfo(rank, "elsewhere", 1)
        )
        self._columns = made_samples((seconds + 2) * RATE_HZ, rank)
        self._offset_s = rank / world_size / BATCHES_PER_S
        self._waiting: deque[tuple[int, float]] = deque()
        self._rows: dict[BatchKind, int] = {"sample": 0, "step": 0}
        self._seq = 0
        self.messages = 0
        self.samples = 0
        self.ack_ms: list[float] = []

    async def introduce(self, connection: ClientConnection, token: str) -> None:
        """Open the stream, and wait for the welcome."""
        for message in (Hello(PROTOCOL_VERSION), Auth(token), self._register):
            await connection.send(encode(message))
        welcome = decode_server_message(await connection.recv(decode=False))
        if not isinstance(welcome, Welcome):
            raise RuntimeError(f"expected a welcome, got {welcome}")

    async def send(self, connection: ClientConnection, seconds: float) -> None:
        """Send rows as they would be measured, for some seconds."""
        await connection.send(encode(FieldTable(TABLE, FIELDS)))
        started_s = time.monotonic() + self._offset_s
        for tick in range(round(seconds * BATCHES_PER_S)):
            await asyncio.sleep(max(0.0, started_s + tick / BATCHES_PER_S - time.monotonic()))
            due = (tick + 1) * RATE_HZ // BATCHES_PER_S - self._rows["sample"]
            await self._send_batch(connection, "sample", due)
            await self._send_batch(connection, "step", STEPS_PER_BATCH)
            self.samples += due

    async def say_goodbye(self, connection: ClientConnection) -> float:
        """End the stream; milliseconds until that is committed and the server closes."""
        started_s = time.monotonic()
        self._seq += 1
        await connection.send(encode(Goodbye(self._seq, time.time_ns(), "exit", 0)))
        await connection.wait_closed()
        return (time.monotonic() - started_s) * 1e3

    async def take_acks(self, connection: ClientConnection) -> None:
        """Note acks until the connection ends."""
        async for frame in connection:
            message = decode_server_message(frame)
            if isinstance(message, Error):
                raise RuntimeError(f"{message.code}: {message.message}")
            if isinstance(message, Ack):
                now_s = time.monotonic()
                while self._waiting and self._waiting[0][0] <= message.seq:
                    self.ack_ms.append((now_s - self._waiting.popleft()[1]) * 1e3)

    async def _send_batch(self, connection: ClientConnection, kind: BatchKind, count: int) -> None:
        first = self._rows[kind]
        self._rows[kind] += count
        part = slice(first, first + count)
        now_ns = time.time_ns()
        columns = {name: column[part].tolist() for name, column in self._columns.items()}
        columns["time_ns"] = [now_ns + row for row in range(count)]
        if kind == "step":
            columns["step"] = list(range(first, first + count))
        body = encode_columns(array(field.code, columns[field.name]) for field in FIELDS)
        self._seq += 1
        self._waiting.append((self._seq, time.monotonic()))
        await connection.send(encode(Batch(self._seq, kind, TABLE, first, count, body)))
        self.messages += 1


async def drain(connection: ClientConnection) -> None:
    """Take what comes and do nothing with it."""
    async for _frame in connection:
        pass


async def measure(pid: int, url: str, ranks: int, seconds: int, token: str | None) -> Usage:
    """Send the traffic of all ranks to an echo server (no token) or to a real one."""
    agents = [Agent(rank, ranks, seconds) for rank in range(ranks)]
    connections = [await connect(url, **CONNECT) for _ in agents]
    pairs = list(zip(agents, connections, strict=True))
    if token is not None:
        for agent, connection in pairs:
            await agent.introduce(connection, token)
    readers = [
        asyncio.create_task(drain(connection) if token is None else agent.take_acks(connection))
        for agent, connection in pairs
    ]
    started_s = cpu_s(pid)
    await asyncio.gather(*(agent.send(connection, seconds) for agent, connection in pairs))
    used_s = cpu_s(pid) - started_s
    resident_bytes = rss_bytes(pid)
    if token is not None:
        left_ms = await asyncio.gather(
            *(agent.say_goodbye(connection) for agent, connection in pairs)
        )
        print(f"{'':>22}  goodbye of all ranks at once committed within {max(left_ms):.0f} ms")
    for connection in connections:
        await connection.close()
    await asyncio.gather(*readers)
    return Usage(
        sum(agent.messages for agent in agents),
        sum(agent.samples for agent in agents),
        used_s,
        resident_bytes,
        [ack_ms for agent in agents for ack_ms in agent.ack_ms],
    )


async def follow(url: str, token: str) -> None:
    """A page that shows every rank; never returns by itself."""
    headers = {"Authorization": f"Bearer {token}"}
    fields = [field.name for field in FIELDS[2 : 2 + SHOWN_FIELDS]]
    async with connect(f"{url}/ws/live", additional_headers=headers, **CONNECT) as page:
        await page.send(json.dumps({"type": "subscribe_runs", "id": 1}))
        for number in range(2, 100):
            await page.send(
                json.dumps({"type": "subscribe_run", "id": number, "run": RUN_ID, "fields": fields})
            )
            async for frame in page:
                message = json.loads(frame)
                if message["type"] == "result" and message["id"] == number:
                    break
            if message["ok"]:
                break
            await asyncio.sleep(0.05)
        await drain(page)


async def measure_server(
    server: ServerProcess, ranks: int, seconds: int, *, with_page: bool
) -> Usage:
    """Traffic to the real server, with or without somebody who looks."""
    url = server.url.replace("http", "ws", 1)
    page = asyncio.create_task(follow(url, server.token)) if with_page else None
    usage = await measure(server.pid, f"{url}/ws/agent", ranks, seconds, server.token)
    if page is not None:
        page.cancel()
        await asyncio.wait({page})
    return usage


@contextmanager
def echo_server() -> Generator[tuple[int, str]]:
    """A raw ``websockets`` echo server in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, f"ws://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def show(name: str, usage: Usage, echo_us: float) -> float:
    """Print one phase; CPU microseconds a message."""
    message_us = usage.cpu_s / usage.messages * 1e6
    line = f"{name:>22}: {message_us:6.1f} us CPU a message"
    if echo_us:
        line += f" ({echo_us / message_us:.2f} of raw echo)"
    line += f", {usage.cpu_s / usage.samples * 1e6:5.1f} us a sample"
    line += f", RSS {usage.rss_bytes / 2**20:.0f} MiB"
    if usage.ack_ms:
        p50, p99 = np.percentile(usage.ack_ms, [50, 99]).tolist()
        line += f", ack p50 {p50:.0f} ms p99 {p99:.0f} ms max {max(usage.ack_ms):.0f} ms"
    print(line, flush=True)
    return message_us


def main() -> None:
    """Print one line a server."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=70)
    options = parser.parse_args()
    ranks, seconds = options.ranks, options.seconds
    print(f"{ranks} ranks, {len(FIELDS)} columns, {RATE_HZ} Hz in {BATCHES_PER_S} batches a second")
    with echo_server() as (pid, url):
        usage = asyncio.run(measure(pid, url, ranks, min(seconds, 15), None))
        echo_us = show("raw websockets echo", usage, 0.0)
    for name, with_page in (("server", False), ("server and a page", True)):
        with tempfile.TemporaryDirectory() as folder:
            with ServerProcess(Path(folder)) as server:
                usage = asyncio.run(measure_server(server, ranks, seconds, with_page=with_page))
                show(name, usage, echo_us)
                server.terminate()
            size_bytes = (Path(folder) / "vramscope.db").stat().st_size
            rows = usage.samples + usage.messages // 2 * STEPS_PER_BATCH
            print(f"{'':>22}  {size_bytes / rows:.0f} B a row (sample or step) on disk")


if __name__ == "__main__":
    main()
