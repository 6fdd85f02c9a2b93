"""The transport against servers that hang, refuse, lie, flood and talk nonsense."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable

import pytest

from tests.support.fake_server import Behaviour, FakeServer, silent_listener, wait_until
from tests.support.transport_peer import QUICK, Peer
from vramscope.transport.limits import ConnectionLimits, TransportLimits
from vramscope_protocol.errors import PERMANENT
from vramscope_protocol.messages import AgentStatus
from vramscope_protocol.session import ServerSession


def test_a_server_that_never_acknowledges_gets_no_more_than_the_window(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    server.behaviour.acks = False
    limits = TransportLimits(window_bytes=5000, connection=QUICK.connection)
    peer = connect(server.url, limits=limits)
    peer.put(100, "x" * 1000)
    server.wait_for(lambda s: len(s.seqs()) >= 5)
    peer.transport.offer_status(AgentStatus(1.0, 0.0))
    peer.outbox.wakeup.set()
    server.wait_for(lambda s: s.status)  # the connection is alive, and sent after the entries
    assert len(server.seqs()) == 5
    assert peer.outbox.unacked_bytes < 5000 + 2000


def test_an_acknowledgement_that_never_comes_ends_the_connection(
    server: FakeServer, connect: Callable[..., Peer], capfd: pytest.CaptureFixture[str]
) -> None:
    server.behaviour.acks = False
    limits = TransportLimits(ack_timeout_s=0.1, connection=QUICK.connection)
    peer = connect(server.url, limits=limits)
    peer.put()
    server.wait_for(lambda s: s.connections >= 2)
    assert "expected an acknowledgement within 0.1 s, got none" in capfd.readouterr().err
    assert "broke the protocol" in peer.notices.texts()[0]


def test_a_process_that_was_stopped_does_not_accuse_the_server(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    """What the server answered meanwhile lies unread."""
    server.behaviour.acks = False
    limits = TransportLimits(ack_timeout_s=1.3, idle_wait_s=0.1, connection=QUICK.connection)
    peer = connect(server.url, limits=limits)
    peer.put()
    server.wait_for(lambda s: s.seqs() == [1])
    ctypes.PyDLL(None).usleep(1_500_000)  # holds the GIL
    peer.put()
    server.wait_for(lambda s: 2 in s.seqs())
    assert server.connections == 1
    assert peer.notices.texts() == []


def test_a_server_that_never_reads_does_not_hold_the_transport(
    connect: Callable[..., Peer],
) -> None:
    behaviour = Behaviour(stops_reading=True)
    limits = TransportLimits(
        window_bytes=64 << 20,
        connection=ConnectionLimits(send_timeout_s=0.2, close_timeout_s=0.2),
    )
    with FakeServer(behaviour) as server:
        peer = connect(server.url, limits=limits)
        peer.outbox._max_bytes = 64 << 20
        peer.put(40, "x" * 900_000)
        server.wait_for(lambda s: s.connections >= 2, timeout_s=20)
        assert peer.outbox.losses.version == 0


@pytest.mark.parametrize("code", sorted(PERMANENT))
@pytest.mark.parametrize("close_silently", [False, True])
def test_a_permanent_refusal_is_said_once_and_not_retried_soon(
    connect: Callable[..., Peer],
    capfd: pytest.CaptureFixture[str],
    code: str,
    close_silently: bool,
) -> None:
    with FakeServer(Behaviour(refuse=code, close_silently=close_silently)) as server:
        peer = connect(server.url)
        wait_until(lambda: peer.transport._attempts_failed == 1, "the refusal")
        peer.put()
        assert not peer.transport.flush(0.3)  # asks once more, at once
        wait_until(lambda: peer.attempts == 2, "the second attempt")
        assert server.connections == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"vramscope: the server at {server.url} refused this process")
    assert FakeServer.token not in line


def test_a_wrong_token_says_where_to_give_the_right_one(
    server: FakeServer, connect: Callable[..., Peer], capfd: pytest.CaptureFixture[str]
) -> None:
    peer = connect(server.url, token="wrong-token")
    wait_until(lambda: peer.transport._attempts_failed == 1, "the refusal")
    error = capfd.readouterr().err
    assert "give the server's token as --token or VRAMSCOPE_TOKEN" in error
    assert "wrong-token" not in error


@pytest.mark.parametrize(
    "frames",
    [
        [b"\xff\xff garbage"],
        ["a text frame"],
        [b"\x00" * (2 << 20)],
        [ServerSession().ack(10**9)],
        [ServerSession().welcome(0)],
    ],
    ids=["garbage", "text", "oversized", "ack of the unsent", "second welcome"],
)
def test_a_server_that_sends_nonsense_is_left_and_noted(
    connect: Callable[..., Peer], frames: list[bytes | str]
) -> None:
    with FakeServer(Behaviour(after_welcome=frames)) as server:
        peer = connect(server.url)
        peer.put(3)
        server.wait_for(lambda s: s.connections >= 3)
        wait_until(peer.notices.texts, "a note")
        assert "broke the protocol" in peer.notices.texts()[0]
        assert "times)" in peer.notices.texts()[0]
        server.behaviour.after_welcome = []
        wait_until(lambda: peer.transport.flush(1), "delivery to the healed server")
        assert server.seqs() == [1, 2, 3]


def test_a_server_that_floods_is_left(connect: Callable[..., Peer]) -> None:
    flood: list[bytes | str] = [ServerSession().ack(0)] * 300
    limits = TransportLimits(connection=ConnectionLimits(max_frames_per_s=100))
    with FakeServer(Behaviour(after_welcome=flood)) as server:
        peer = connect(server.url, limits=limits)
        wait_until(peer.notices.texts, "a note")
        assert "expected at most 100 messages a second" in peer.notices.texts()[0]


def test_a_server_that_floods_with_pings_is_left(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    """They are answered by the library and never become messages."""
    limits = TransportLimits(idle_wait_s=0.1, connection=ConnectionLimits(max_cpu_fraction=0.02))
    peer = connect(server.url, limits=limits)
    peer.put()
    server.wait_for(lambda s: s.seqs() == [1])

    def flood() -> None:
        (connection,) = server._open
        with contextlib.suppress(OSError):
            while True:
                connection.socket.sendall(b"\x89\x00" * 1000)

    flooder = threading.Thread(target=flood, daemon=True)
    flooder.start()
    wait_until(peer.notices.texts, "a note")
    assert "expected reading to take 2% of a core at most" in peer.notices.texts()[0]
    flooder.join(5)
    assert not flooder.is_alive()


def test_an_unknown_message_type_is_ignored(connect: Callable[..., Peer]) -> None:
    import msgspec

    newer = msgspec.msgpack.encode({"type": "from_the_future", "x": 1})
    with FakeServer(Behaviour(after_welcome=[newer])) as server:
        peer = connect(server.url)
        peer.put()
        assert peer.transport.flush(5)
        assert server.connections == 1


@pytest.mark.parametrize("welcomes", [True, False])
def test_a_server_that_hangs_before_the_welcome_is_left(
    connect: Callable[..., Peer], capfd: pytest.CaptureFixture[str], welcomes: bool
) -> None:
    limits = TransportLimits(
        welcome_timeout_s=0.1,
        connection=ConnectionLimits(open_timeout_s=0.1, close_timeout_s=0.1),
    )
    if welcomes:
        with silent_listener() as url:
            peer = connect(url, limits=limits)
            wait_until(lambda: peer.attempts >= 2, "a second attempt")
        assert "no server answers" in capfd.readouterr().err
    else:
        with FakeServer(Behaviour(welcomes=False)) as server:
            peer = connect(server.url, limits=limits)
            server.wait_for(lambda s: s.connections >= 2)
            assert "expected a welcome within 0.1 s" in capfd.readouterr().err
            server.stop()


def test_stop_and_flush_keep_their_deadline_when_the_server_hangs(
    connect: Callable[..., Peer],
) -> None:
    with FakeServer(Behaviour(acks=False, stops_reading=True)) as server:
        limits = TransportLimits(window_bytes=64 << 20)
        peer = connect(server.url, limits=limits)
        peer.outbox._max_bytes = 64 << 20
        peer.put(30, "x" * 900_000)
        server.wait_for(lambda s: s.connections == 1)
        started_s = time.monotonic()
        assert not peer.transport.flush(0.3)
        peer.transport.stop(0.5)
        assert time.monotonic() - started_s < 1.5
        wait_until(lambda: not peer.transport._thread.is_alive(), "the thread's end", 2)
