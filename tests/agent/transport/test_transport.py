from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from tests.support.fake_server import (
    Behaviour,
    FakeServer,
    free_port,
    wait_until,
)
from tests.support.transport_peer import Peer
from vramscope.transport.backoff import Backoff
from vramscope_protocol.account import AgentAccount
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import (
    AgentStatus,
    Batch,
    Command,
    Field,
    FieldTable,
    Register,
)
from vramscope_protocol.session import ServerSession

TABLE = FieldTable(1, [Field("time_ns", "q", "ns"), Field("step", "q")])


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


def test_a_status_that_tells_nothing_new_is_sent_to_a_new_connection_only(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    def status(second: int) -> AgentStatus:
        account = AgentAccount(elapsed_us=second, wanted_rate_hz=10.0)
        return AgentStatus(10.0, 0.001 * second, account=account)

    peer = connect(server.url)
    for second in range(4):
        peer.transport.offer_status(status(second))
        peer.put(1)
        assert peer.transport.flush(5)
    (first,) = server.of_type(AgentStatus)
    assert first.cost_fraction == 0
    server.cut()
    server.wait_for(lambda s: s.connections == 2)
    peer.transport.offer_status(status(4))
    peer.put(1)
    server.wait_for(lambda s: len(s.of_type(AgentStatus)) == 2)
    assert server.of_type(AgentStatus)[-1].cost_fraction == 0.004


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


def test_bytes_that_were_sent_are_counted_over_all_connections(
    server: FakeServer, connect: Callable[..., Peer]
) -> None:
    peer = connect(server.url)
    peer.put(1, "x" * 2000)
    wait_until(lambda: peer.transport.sent_bytes() > 2000, "the bytes to be counted")
    first = peer.transport.sent_bytes()
    server.cut()
    server.wait_for(lambda s: s.connections == 2)
    wait_until(lambda: peer.transport.sent_bytes() > first, "the bytes of the next connection")


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
    connect: Callable[..., Peer],
) -> None:
    with FakeServer(Behaviour(acks=False)) as server:
        peer = connect(server.url)
        peer.put(5)
        server.wait_for(has(5))
        assert not peer.outbox.is_empty
        for connection in list(server._open):
            connection.send(ServerSession().ack(5))
        wait_until(lambda: peer.outbox.is_empty, "the outbox to empty")
