"""Pieces are committed before they are acked, and what came is what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from tests.support.server_app import ServerApp, server_app
from tests.support.wire_snapshots import wire_snapshot
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import SnapshotAck, SnapshotBegin, SnapshotChunk
from vramscope_server.ingest.message_checks import check_snapshot
from vramscope_server.settings import Limits
from vramscope_server.store import snapshots

RUN = "0123456789ab"


def state(server: ServerApp, identity: str = "s1") -> str:
    found: str = server.get(f"/api/v1/snapshots/{identity}")["state"]
    return found


def test_a_snapshot_arrives_piece_by_piece(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot(step=7, mode="alloc", stacks=True, steps=[(6, 1), (7, 2)])
    with server.agent() as agent:
        assert agent.snapshot(begin, packed) == SnapshotAck("s1", len(packed))
        assert state(server) == "complete"
    (listed,) = server.get(f"/api/v1/runs/{RUN}/snapshots")["snapshots"]
    assert listed["steps"] == [[6, 1], [7, 2]]
    assert (listed["run"], listed["rank"], listed["step"]) == (RUN, 0, 7)


def test_after_a_lost_connection_it_goes_on_where_it_was(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as agent:
        ack = agent.snapshot(begin, packed, pieces=2)
        assert ack.offset == 2000
        assert state(server) == "receiving"
        agent.close()
        server.wait_until(lambda: state(server) == "incomplete")
        agent.open()
        agent.send(begin)
        assert agent.wait_snapshot_ack().offset == 2000
        assert agent.snapshot(begin, packed).offset == len(packed)


def test_one_of_a_process_that_was_replaced_is_not_coming_any_more(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as first:
        first.snapshot(begin, packed, pieces=1)
        first.close()
        with server.agent():
            server.wait_until(lambda: state(server) == "incomplete")


def test_after_a_restart_of_the_server_too(tmp_path: Path) -> None:
    begin, packed, _ = wire_snapshot()
    with server_app(tmp_path) as server, server.agent() as agent:
        agent.snapshot(begin, packed, pieces=2)
        stream = agent.stream
    with server_app(tmp_path) as server:
        agent = server.agent()
        agent.stream = stream
        with agent:
            agent.send(begin)
            assert agent.wait_snapshot_ack().offset == 2000
            assert agent.snapshot(begin, packed).offset == len(packed)
            assert state(server) == "complete"


def test_a_piece_that_comes_twice_is_kept_once(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as agent:
        agent.snapshot(begin, packed, pieces=1)
        agent.send(SnapshotChunk("s1", 0, packed[:1000]))
        assert agent.wait_snapshot_ack().offset == 1000
        assert agent.snapshot(begin, packed).offset == len(packed)


def test_what_is_not_what_was_announced_is_refused_and_forgotten(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    harmed = packed[:500] + bytes([packed[500] ^ 1]) + packed[501:]
    with server.agent() as agent:
        ack = agent.snapshot(begin, harmed)
        assert ack.refused
        found = server.get("/api/v1/snapshots/s1")
        assert (found["state"], found["reason"]) == ("failed", ack.refused)
        again = agent.snapshot(begin, packed)
        assert again.refused == ack.refused
    assert server.context.store.read_now(_part_count) == 0


def _part_count(connection: Any) -> int:
    from sqlalchemy import func, select

    from vramscope_server.store import tables

    return int(connection.scalar(select(func.count()).select_from(tables.snapshot_parts)) or 0)


@pytest.mark.parametrize("is_harmed", [False, True])
def test_one_that_was_never_checked_is_checked_when_its_agent_asks(
    tmp_path: Path, *, is_harmed: bool
) -> None:
    begin, packed, _ = wire_snapshot()
    if is_harmed:
        begin.sha256 = "0" * 64
    with server_app(tmp_path) as server, server.agent() as agent:
        agent.snapshot(begin, packed, pieces=1)
        stream = agent.stream
        # What a server leaves that is killed between the last piece and the check.
        server.context.store.write_now(lambda c: snapshots.append(c, "s1", 1000, packed[1000:]))
    with server_app(tmp_path) as server:
        agent = server.agent()
        agent.stream = stream
        with agent:
            agent.send(begin)
            ack = agent.wait_snapshot_ack()
            assert state(server) == ("failed" if is_harmed else "complete")
            assert bool(ack.refused) == is_harmed
            assert ack.offset == (0 if is_harmed else len(packed))


def test_a_wrong_hash_is_found(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    begin.sha256 = "0" * 64
    with server.agent() as agent:
        assert agent.snapshot(begin, packed).refused == "what came is not what was sent"


def test_another_rank_cannot_take_an_id(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as first, server.agent(rank=1, world_size=2) as second:
        first.snapshot(begin, packed, pieces=1)
        assert second.snapshot(begin, packed).refused == "the id belongs to another snapshot"
        assert first.snapshot(begin, packed).offset == len(packed)


def test_one_that_is_deleted_on_its_way_is_not_wanted_any_more(server: ServerApp) -> None:
    from tests.support.server_app import OWNER

    begin, packed, _ = wire_snapshot()
    with server.agent() as agent:
        agent.snapshot(begin, packed, pieces=1)
        assert server.client.delete("/api/v1/snapshots/s1", headers=OWNER).status_code == 204
        agent.send(SnapshotChunk("s1", 1000, packed[1000:2000]))
        assert agent.wait_snapshot_ack().refused == "it was deleted"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"snapshot_raw_bytes": 100}, "a pickle of at most 100 bytes"),
        ({"snapshot_wire_bytes": 100}, "a gzipped pickle of at most 100 bytes"),
        ({"snapshot_run_bytes": 100}, "no room: the snapshots of one run"),
        ({"snapshot_total_bytes": 100}, "no room: all snapshots"),
    ],
)
def test_a_huge_one_is_refused_with_the_reason(
    tmp_path: Path, limits: dict[str, int], words: str
) -> None:
    begin, packed, _ = wire_snapshot()
    with server_app(tmp_path, Limits(**limits)) as server, server.agent() as agent:
        assert words in agent.snapshot(begin, packed).refused
        agent.samples(3)
        agent.wait_acked()
        assert server.get(f"/api/v1/runs/{RUN}/snapshots") == {"snapshots": []}


def test_an_abandoned_one_makes_way(tmp_path: Path) -> None:
    begin, packed, _ = wire_snapshot()
    limits = Limits(snapshot_total_bytes=int(len(packed) * 1.5))
    with server_app(tmp_path, limits) as server:
        with server.agent() as agent:
            agent.snapshot(begin, packed, pieces=1)
        with server.agent(run_id="bbbbbbbbbbbb", run="next") as agent:
            second, packed, _ = wire_snapshot("s2")
            server.wait_until(lambda: state(server) == "incomplete")
            assert agent.snapshot(second, packed).offset == len(packed)
        server.get_error("/api/v1/snapshots/s1", 404)


def test_live_data_goes_on_beside_it(server: ServerApp) -> None:
    begin, packed, _ = wire_snapshot()
    with server.agent() as agent:
        agent.snapshot(begin, packed, pieces=1)
        agent.samples(5)
        agent.wait_acked()
        assert agent.snapshot(begin, packed).offset == len(packed)


@pytest.mark.parametrize(
    "change",
    [{"id": "../x"}, {"sha256": "xyz"}, {"raw_bytes": 0}, {"wire_bytes": 0}, {"step": -(2**63)}],
)
def test_what_cannot_be_is_a_breach_of_the_protocol(change: dict[str, Any]) -> None:
    begin, _, _ = wire_snapshot()
    for name, value in change.items():
        setattr(begin, name, value)
    assert isinstance(begin, SnapshotBegin)
    with pytest.raises(ProtocolError):
        check_snapshot(begin)


def test_a_piece_that_ends_beyond_what_a_database_can_count_is_one_too() -> None:
    with pytest.raises(ProtocolError):
        check_snapshot(SnapshotChunk("s1", 2**63 - 2, bytes(1000)))


def test_a_database_that_takes_nothing_loses_the_snapshot_and_not_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, packed, _ = wire_snapshot()
    tries: list[int] = []

    def full(*arguments: Any) -> bool:
        tries.append(1)
        raise OperationalError("insert", {}, Exception("database or disk is full"))

    with server_app(tmp_path, Limits(snapshot_retry_s=0.01)) as server, server.agent() as agent:
        monkeypatch.setattr("vramscope_server.store.snapshots.append", full)
        ack = agent.snapshot(begin, packed)
        assert ack.refused == "the server's database does not take it"
        assert len(tries) == 3
        monkeypatch.undo()
        agent.samples(3)
        agent.wait_acked()
