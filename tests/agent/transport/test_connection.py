"""One connection to a server that a test lets do anything, without the transport around it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.fake_server import Behaviour, FakeServer, free_port, silent_listener
from vramscope.transport.address import parse_address
from vramscope.transport.connection import Connection
from vramscope.transport.failure import CONNECT_ERRORS, Refused
from vramscope.transport.limits import ConnectionLimits
from vramscope_protocol.codec import encode
from vramscope_protocol.errors import AUTH_FAILED, BAD_MESSAGE, RATE_LIMITED, ProtocolError
from vramscope_protocol.messages import (
    Ack,
    Command,
    Event,
    RankInfo,
    Register,
    RunInfo,
    ServerMessage,
    Welcome,
)
from vramscope_protocol.session import AgentSession, ServerSession

QUICK = ConnectionLimits(close_timeout_s=0.2)


class Line:
    """A connection and what came over it."""

    def __init__(
        self,
        url: str,
        limits: ConnectionLimits = QUICK,
        take: Callable[[ServerMessage], None] | None = None,
    ) -> None:
        register = Register("stream-1", RunInfo("run", "run"), RankInfo(0, "host", 1))
        self.session = AgentSession(FakeServer.token, register)
        self.messages: list[ServerMessage] = []
        self.came = threading.Condition()
        self.closed = threading.Event()
        self.error_at_close: BaseException | None = None
        self._also = take
        self.connection = Connection(
            parse_address(url), self.session, self._take, self._close, limits
        )

    def _take(self, message: ServerMessage) -> None:
        with self.came:
            self.messages.append(message)
            self.came.notify_all()
        if self._also is not None:
            self._also(message)

    def _close(self) -> None:
        self.error_at_close = self.connection.error
        self.closed.set()

    def introduce(self) -> None:
        """Say who is there; a server that refuses may close before it has heard all."""
        with suppress(ConnectionClosed):
            for frame in self.session.opening_frames():
                self.connection.send(frame)

    def wait_for(self, kind: type[ServerMessage]) -> None:
        with self.came:
            assert self.came.wait_for(lambda: kind in map(type, self.messages), 10)


@contextmanager
def line_to(server: FakeServer, limits: ConnectionLimits = QUICK) -> Iterator[Line]:
    """An open line on which the opening frames were sent."""
    line = Line(server.url, limits)
    with line.connection:
        line.introduce()
        yield line


def test_what_the_server_sends_comes_in_order_and_what_is_sent_arrives(server: FakeServer) -> None:
    with line_to(server) as line:
        line.wait_for(Welcome)
        line.connection.send(encode(Event(1, 0, "mark")))
        line.wait_for(Ack)
        server.send(Command("c1", "stats"))
        line.wait_for(Command)
        assert not line.connection.is_closed
    assert [type(message) for message in line.messages] == [Welcome, Ack, Command]
    assert server.seqs() == [1]


def test_leaving_closes_and_ends_its_threads(server: FakeServer) -> None:
    with line_to(server) as line:
        line.wait_for(Welcome)
    assert line.closed.wait(20)
    assert line.connection.is_closed
    assert [t for t in threading.enumerate() if t.name == "vramscope-receiver"] == []
    with pytest.raises(ConnectionClosed):
        line.connection.send(b"too late")


def test_when_it_is_cut_the_reason_is_there_before_anybody_is_told(server: FakeServer) -> None:
    with line_to(server) as line:
        line.wait_for(Welcome)
        server.cut()
        assert line.closed.wait(10)
        assert isinstance(line.error_at_close, ConnectionClosed)
        assert line.connection.is_closed


def test_a_refusal_of_the_server_is_not_a_message_but_the_reason() -> None:
    with FakeServer(Behaviour(refuse=AUTH_FAILED)) as server, line_to(server) as line:
        assert line.closed.wait(10)
        assert isinstance(line.error_at_close, Refused)
        assert line.error_at_close.code == AUTH_FAILED
    assert line.messages == []


@pytest.mark.parametrize(
    ("frames", "code"),
    [([b"\xff garbage"], BAD_MESSAGE), ([ServerSession().ack(0)] * 20, RATE_LIMITED)],
    ids=["garbage", "flood"],
)
def test_nonsense_ends_it_with_a_protocol_error(frames: list[bytes | str], code: str) -> None:
    limits = ConnectionLimits(close_timeout_s=0.2, max_frames_per_s=10)
    with FakeServer(Behaviour(after_welcome=frames)) as server, line_to(server, limits) as line:
        assert line.closed.wait(10)
        assert isinstance(line.error_at_close, ProtocolError)
        assert line.error_at_close.code == code
        with pytest.raises(ConnectionClosed):
            line.connection.send(b"more")


@pytest.mark.expects_guarded_errors
def test_an_error_of_whoever_takes_the_messages_still_tells_the_end(server: FakeServer) -> None:
    def fail(message: ServerMessage) -> None:
        raise ValueError("a bug of ours")

    line = Line(server.url, take=fail)
    with line.connection:
        line.introduce()
        assert line.closed.wait(10)
        assert line.connection.is_closed


def send_for_ever(line: Line, frame: bytes) -> None:
    while True:
        line.connection.send(frame)


def test_aborting_frees_a_thread_that_is_stuck_in_a_write() -> None:
    with FakeServer(Behaviour(stops_reading=True)) as server, line_to(server) as line:
        line.wait_for(Welcome)
        freed = threading.Event()
        frame = encode(Event(1, 0, "mark", None, "x" * 1_000_000))

        def write_until_freed() -> None:
            with pytest.raises(ConnectionClosed):
                send_for_ever(line, frame)
            freed.set()

        thread = threading.Thread(target=write_until_freed)
        thread.start()
        tries = 0
        while not freed.wait(0.1) and tries < 30:  # the first may come before it is stuck
            line.connection.abort()
            tries += 1
        assert freed.is_set()
        thread.join(5)
        line.connection.abort()  # it is over: harmless
        assert line.closed.wait(20)


def test_a_write_to_a_server_that_does_not_read_ends_in_time() -> None:
    limits = ConnectionLimits(send_timeout_s=0.2, close_timeout_s=0.2)
    with FakeServer(Behaviour(stops_reading=True)) as server, line_to(server, limits) as line:
        line.wait_for(Welcome)
        frame = encode(Event(1, 0, "mark", None, "x" * 1_000_000))
        started_s = time.monotonic()
        rescue = threading.Timer(5, line.connection.abort)
        rescue.start()
        # Some frames still fit into the buffers on the way.
        with pytest.raises(ConnectionClosed):
            send_for_ever(line, frame)
        rescue.cancel()
        assert time.monotonic() - started_s < 5


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_connection_that_cannot_be_opened_leaves_nothing_behind() -> None:
    before = open_files()
    with pytest.raises(ConnectionRefusedError):
        Line(f"http://127.0.0.1:{free_port()}")
    limits = ConnectionLimits(open_timeout_s=0.1, close_timeout_s=0.1)
    with silent_listener() as url:
        started_s = time.monotonic()
        with pytest.raises(CONNECT_ERRORS):
            Line(url, limits)
        assert time.monotonic() - started_s < 3
    assert open_files() <= before


def test_its_cpu_time_grows_with_what_is_received_and_stays_known(server: FakeServer) -> None:
    with line_to(server) as line:
        line.wait_for(Welcome)
        at_first_ns = line.connection.cpu_ns()
        for seq in range(1, 200):
            line.connection.send(encode(Event(seq, 0, "mark")))
        with line.came:
            assert line.came.wait_for(lambda: len(line.messages) == 200, 10)
        while_open_ns = line.connection.cpu_ns()
        assert while_open_ns > at_first_ns
    assert line.connection.cpu_ns() >= while_open_ns


def test_a_forked_child_lets_go_and_the_parent_goes_on(server: FakeServer) -> None:
    with line_to(server) as line:
        line.wait_for(Welcome)
        before = open_files()
        pid = os.fork()
        if pid == 0:
            line.connection.forget_after_fork()
            os._exit(0 if open_files() == before - 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        line.connection.send(encode(Event(1, 0, "mark")))
        line.wait_for(Ack)
