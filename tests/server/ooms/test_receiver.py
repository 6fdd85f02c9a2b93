"""Reports are put together from pieces, whatever comes in between, and bounded."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.server_app import ServerApp, server_app
from tests.support.wire_ooms import wire_oom
from vramscope_protocol.codec import MAX_OOM_BYTES
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import OomBegin, SnapshotAck, SnapshotChunk
from vramscope_server.ingest.message_checks import check_oom
from vramscope_server.settings import Limits

RUN = "0123456789ab"


def listed(server: ServerApp) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"/api/v1/runs/{RUN}/ooms")["ooms"]
    return found


def test_a_report_arrives_piece_by_piece(server: ServerApp) -> None:
    begin, data = wire_oom(threads=[{"name": "x" * 3000, "frames": []}])
    with server.agent() as agent:
        assert agent.oom(begin, data, pieces=2).offset == 2000
        assert listed(server) == []
        assert agent.oom(begin, data) == SnapshotAck("o1", len(data))
    (row,) = listed(server)
    assert (row["id"], row["run"], row["raw_bytes"]) == ("o1", RUN, len(data))


def test_after_a_lost_connection_it_goes_on_where_it_was(server: ServerApp) -> None:
    begin, data = wire_oom(threads=[{"name": "x" * 3000, "frames": []}])
    with server.agent() as agent:
        agent.oom(begin, data, pieces=2)
        agent.reconnect()
        agent.send(begin)
        assert agent.wait_snapshot_ack().offset == 2000
        assert agent.oom(begin, data).offset == len(data)
    assert len(listed(server)) == 1


def test_after_a_restart_it_begins_anew_and_what_is_stored_is_not_taken_again(
    tmp_path: Path,
) -> None:
    begin, data = wire_oom(threads=[{"name": "x" * 3000, "frames": []}])
    other, other_data = wire_oom("o2")
    with server_app(tmp_path) as server, server.agent() as agent:
        agent.oom(begin, data, pieces=2)
        agent.oom(other, other_data)
        stream = agent.stream
    with server_app(tmp_path) as server:
        agent = server.agent()
        agent.stream = stream
        with agent:
            agent.send(other)
            assert agent.wait_snapshot_ack().offset == len(other_data)
            agent.send(begin)
            assert agent.wait_snapshot_ack().offset == 0
            assert agent.oom(begin, data).offset == len(data)
        assert {row["id"] for row in listed(server)} == {"o1", "o2"}


def test_one_that_a_killed_process_left_comes_on_anothers_stream(server: ServerApp) -> None:
    begin, data = wire_oom()
    with server.agent():
        pass
    with server.agent(run_id="fedcba987654", run="later", rank=5) as later:
        assert later.oom(begin, data).offset == len(data)
    (row,) = listed(server)
    assert (row["run"], row["rank"]) == (RUN, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "unknown"}, "does not know the run"),
        ({"wire_bytes": MAX_OOM_BYTES + 1}, "at most"),
        ({"sha256": "ab" * 32}, "not what was announced"),
        ({"wire_bytes": 10}, "not what was announced"),
        ({"id": "another"}, "expected the report that was announced"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    server: ServerApp, changes: dict[str, Any], words: str
) -> None:
    begin, data = wire_oom()
    begin = msgspec.structs.replace(begin, **changes)
    with server.agent() as agent:
        assert words in agent.oom(begin, data).refused
    assert listed(server) == []


@pytest.mark.parametrize(
    "data", [b"{", b"[1, 2]", b"null", b'"text"', b"\xff\xfe", b'{"id":"o1","x":' + b"[" * 60]
)
def test_what_is_no_report_is_refused(server: ServerApp, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    begin = OomBegin("o1", RUN, 0, 1, len(data), digest)
    with server.agent() as agent:
        assert "expected" in agent.oom(begin, data).refused


def test_what_the_server_stumbles_over_is_answered_all_the_same(
    server: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise OverflowError

    monkeypatch.setattr(server.context.ooms, "put", fail)
    with server.agent() as agent:
        assert "log says why" in agent.oom(*wire_oom()).refused


def test_a_piece_that_was_not_begun_is_refused(server: ServerApp) -> None:
    begin, data = wire_oom()
    with server.agent() as agent:
        agent.oom(begin, data)
        agent.send(SnapshotChunk("o1", 0, data[:10]))
        assert "not begun" in agent.wait_snapshot_ack().refused


def test_reports_that_never_become_whole_are_bounded(tmp_path: Path) -> None:
    begin, data = wire_oom(threads=[{"name": "x" * 3000, "frames": []}])
    limits = replace(Limits(), oom_partial_bytes=2500)
    with server_app(tmp_path, limits) as server, server.agent() as agent:
        agent.oom(begin, data, pieces=2)
        other, other_data = wire_oom("o2", threads=[{"name": "y" * 3000, "frames": []}])
        agent.oom(other, other_data, pieces=1)
        # The one that came least lately has to begin anew.
        agent.send(begin)
        assert agent.wait_snapshot_ack().offset == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "no id"},
        {"run": ""},
        {"linked_to": "a b"},
        {"rank": 1 << 40},
        {"time_ns": -1},
        {"wire_bytes": 0},
        {"sha256": "x"},
    ],
)
def test_what_says_what_cannot_be_ends_the_connection(changes: dict[str, Any]) -> None:
    begin, _ = wire_oom()
    with pytest.raises(ProtocolError):
        check_oom(msgspec.structs.replace(begin, **changes))
