"""Time what happens to every batch of samples on the wire: columns, envelope, checks.

Prints the median CPU time of one batch of ten samples of the default series (a second at 10 Hz
makes four batches of two or three; ten is what a second costs in all).
"""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Callable

from vramscope_protocol.codec import decode_agent_message, encode
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import (
    Auth,
    Batch,
    Field,
    FieldTable,
    Hello,
    RankInfo,
    Register,
    RunInfo,
)
from vramscope_protocol.series import SERIES
from vramscope_protocol.session import ServerSession
from vramscope_protocol.version import PROTOCOL_VERSION

ROWS = 10
CALLS = 500
ROUNDS = 15


def median_us(work: Callable[[], object]) -> float:
    """Median over rounds of the CPU time of one call, in microseconds."""
    rounds = []
    for _ in range(ROUNDS):
        started_ns = time.process_time_ns()
        for _ in range(CALLS):
            work()
        rounds.append((time.process_time_ns() - started_ns) / CALLS / 1000)
    return statistics.median(rounds)


def open_session(table: FieldTable) -> ServerSession:
    """The server's side of a connection that is ready for batches."""
    session = ServerSession()
    session.receive(encode(Hello(PROTOCOL_VERSION)))
    session.receive(encode(Auth("secret")))
    session.authenticated()
    session.receive(encode(Register("s", RunInfo("r", "n"), RankInfo(0, "h", 1))))
    session.welcome(0)
    session.receive(encode(table))
    return session


def main() -> None:
    """Print one line a stage."""
    columns = [array("q", range(at, at + ROWS)) for at in range(len(SERIES))]
    table = FieldTable(0, [Field(series.name, "q", series.unit) for series in SERIES.values()])
    body = encode_columns(columns)
    batch = Batch(1, "sample", 0, 0, ROWS, body)
    frame = encode(batch)
    session = open_session(table)
    print(f"{ROWS} samples of {len(columns)} series: {len(frame)} bytes")
    for name, work in (
        ("encode columns (agent)", lambda: encode_columns(columns)),
        ("encode message (agent)", lambda: encode(batch)),
        ("decode message", lambda: decode_agent_message(frame)),
        ("decode and check (server)", lambda: session.receive(frame)),
    ):
        print(f"{name:28}{median_us(work):8.2f} us")


if __name__ == "__main__":
    main()
