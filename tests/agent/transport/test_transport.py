from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.fake_server import (
    Behaviour,
    FakeServer,
    free_port,
    silent_listener,
    wait_until,
)
from tests.support.transport_peer import QUICK, Peer
from vramscope.transport.backoff import Backoff
from vramscope.transport.limits import ConnectionLimits, TransportLimits
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.errors import PERMANENT
from vramscope_protocol.messages import (
    Ack,
    AgentStatus,
    Batch,
    Command,
    Field,
    FieldTable,
    Register,
)
from vramscope_protocol.session import ServerSession

TABLE = FieldTable(1, [Field("time_ns", "q", "ns"), Field("step", "q")])


@pytest.fixture
def connect() -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def make(*args: object, **options: object) -> Peer:
        peers.append(Peer(*args, **options))  # type: ignore[arg-type]  # passed on as they are
        return peers[-1]

    yield make
    for peer in peers:
        peer.transport.stop(2)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def has(count: int) -> Callable[[FakeServer], bool]:
    return lambda server: len(server.seqs()) >= count


def test_messages_arrive_in_order_and_are_forgotten_when_acknowledged(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    peer.put(20)
    assert peer.transport.flush(5)
    assert server.seqs() == list(range(1, 21))
    assert peer.outbox.memory_bytes == 0
    assert peer.welcomes == 1


def test_a_batch_comes_behind_its_field_table_once_per_connection(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    from array import array

    peer = connect(server.url)
    peer.outbox.declare(TABLE)
    for index in range(3):
        body = encode_columns([array("q", [index]), array("q", [7])])
        peer.outbox.put(Batch(0, "sample", 1, index, 1, body))
    assert peer.transport.flush(5)
    assert [row["time_ns"] for row in server.rows("sample")] == [0, 1, 2]
    assert len(server.of_type(FieldTable)) == 1
    server.cut()
    server.wait_for(lambda s: s.connections == 2)
    peer.outbox.put(Batch(0, "sample", 1, 3, 1, encode_columns([array("q", [3])] * 2)))
    server.wait_for(lambda s: len(s.of_type(FieldTable)) == 2)
    server.wait_for(has(4))
    assert server.errors == []


def test_a_server_that_is_not_there_yet_gets_everything_later(
    connect: Callable[..., Peer], capfd: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer(port=free_port())
    peer = connect(server.url)
    peer.put(5)
    wait_until(lambda: peer.attempts >= 3, "three attempts")
    with server:
        server.wait_for(has(5))
    assert capfd.readouterr().err.splitlines() == [
        f"vramscope: no server answers at {server.url} (Connection refused); "
        "the job goes on, trying again"
    ]


def test_across_a_cut_connection_every_message_is_stored_once(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    for round_number in range(1, 6):
        peer.put(10)
        server.wait_for(has(10 * round_number - 5))
        server.cut()
    wait_until(lambda: peer.transport.flush(1), "everything delivered")
    assert server.seqs() == list(range(1, 51))


def test_a_restarted_server_says_where_to_go_on(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    peer.put(3)
    server.wait_for(has(3))
    server.stop()
    peer.put(3)
    server.start()
    server.wait_for(has(6))
    assert server.seqs() == [1, 2, 3, 4, 5, 6]
    registers = server.of_type(Register)
    assert [register.first_seq for register in registers][:1] == [1]
    assert registers[-1].first_seq <= 4


def test_what_is_committed_but_not_acknowledged_is_not_stored_twice(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    server.behaviour.acks = False
    peer = connect(server.url)
    peer.put(3)
    server.wait_for(has(3))
    server.behaviour.acks = True
    server.behaviour.last_seq = 2  # of the three, two were committed when the server died
    server.cut()
    server.wait_for(has(4))
    assert server.seqs() == [1, 2, 3, 3]


def test_a_server_that_never_acknowledges_gets_no_more_than_the_window(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    server.behaviour.acks = False
    limits = TransportLimits(window_bytes=5000, connection=QUICK.connection)
    peer = connect(server.url, limits=limits)
    peer.put(100, "x" * 1000)
    server.wait_for(has(5))
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


def test_commands_are_handed_on_at_once(server: FakeServer, connect: Callable[..., Peer]) -> None:
    peer = connect(server.url)
    wait_until(lambda: peer.welcomes, "the welcome")
    server.send(Command("c1", "stats"))
    wait_until(lambda: peer.commands, "the command")
    assert peer.commands == [Command("c1", "stats")]


def test_losses_are_told_on_each_connection_and_when_they_grow(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    peer.outbox.count_lost("row_buffer_full", samples=2)
    peer.put()
    server.wait_for(lambda s: s.lost.samples == {"row_buffer_full": 2})
    server.cut()
    server.wait_for(lambda s: s.connections == 2)
    peer.outbox.count_lost("row_buffer_full", samples=1)
    peer.put()
    server.wait_for(lambda s: s.lost.samples == {"row_buffer_full": 3})


def test_of_several_statuses_only_the_newest_is_sent(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    wait_until(lambda: peer.welcomes, "the welcome")
    peer.transport.offer_status(AgentStatus(1.0, 0.0))
    peer.transport.offer_status(AgentStatus(2.0, 0.0))
    peer.put()
    server.wait_for(lambda s: s.status)
    assert [status.rate_hz for status in server.of_type(AgentStatus)] == [2.0]


def test_a_message_larger_than_the_server_takes_is_dropped_and_counted(
    connect: Callable[..., Peer],
) -> None:
    with FakeServer(Behaviour(max_message_bytes=2000)) as server:
        peer = connect(server.url)
        peer.put(1, "x" * 3000)
        peer.put()
        assert peer.transport.flush(5)
        assert server.seqs() == [2]
        assert peer.outbox.losses.message().messages == {"too_large": 1}


def test_a_flush_ends_at_once_where_no_server_is(connect: Callable[..., Peer]) -> None:
    peer = connect(f"http://127.0.0.1:{free_port()}")
    peer.put()
    wait_until(lambda: peer.attempts >= 1, "an attempt")
    started_s = time.monotonic()
    assert not peer.transport.flush(30)
    assert time.monotonic() - started_s < 5


def test_a_flush_cuts_a_long_wait_short(connect: Callable[..., Peer]) -> None:
    server = FakeServer(port=free_port())
    peer = connect(server.url)
    peer.transport._backoff = Backoff(first_s=1000, longest_s=1000)
    wait_until(lambda: peer.attempts >= 1, "an attempt")
    peer.put()
    with server:
        wait_until(lambda: peer.transport.flush(2), "delivery")
        assert server.seqs() == [1]


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


def test_a_clean_stop_closes_the_connection(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    peer.put()
    assert peer.transport.flush(5)
    peer.transport.stop(2)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("vramscope-")]
    assert server.errors == []


def test_the_jobs_random_numbers_and_log_are_left_alone(
    server: FakeServer,
    connect: Callable[..., Peer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    before = random.getstate()
    peer = connect(server.url)
    peer.put(3)
    assert peer.transport.flush(5)
    # The library's keepalive draws from the module-level generator, at its first ping.
    assert [t.name for t in threading.enumerate() if "keepalive" in t.name] == []
    peer.transport.stop(2)
    assert random.getstate() == before
    assert [record for record in caplog.records if "vramscope" in record.name] == []


def test_cpu_time_is_known(server: FakeServer, connect: Callable[..., Peer]) -> None:
    peer = connect(server.url)
    peer.put(200)
    assert peer.transport.flush(5)
    while_open_ns = peer.transport.cpu_ns()
    assert while_open_ns > 0
    peer.transport.stop(2)
    assert peer.transport.cpu_ns() >= while_open_ns


def test_acknowledgements_do_not_have_to_come_one_by_one(
    connect: Callable[..., Peer], tmp_path: Path
) -> None:
    with FakeServer(Behaviour(acks=False)) as server:
        peer = connect(server.url)
        peer.put(5)
        server.wait_for(has(5))
        assert not peer.outbox.is_empty
        for connection in list(server._open):
            connection.send(ServerSession().ack(Ack(5).seq))
        wait_until(lambda: peer.outbox.is_empty, "the outbox to empty")
