"""What becomes of snapshots when the process ends: delivered in time, or lost and told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.test_agent import make
from tests.support.fake_server import Behaviour, FakeServer, free_port
from vramscope.agent import Agent
from vramscope.lifecycle import Ending
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.messages import (
    Event,
    Goodbye,
    Lost,
    Register,
    SnapshotBegin,
    SnapshotChunk,
)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def ship(agent: Agent, folder: Path, size_bytes: int = 700_000) -> Path:
    path = folder / "s1.pickle.gz"
    path.write_bytes(bytes(size_bytes))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    begin = SnapshotBegin("s1", 1, size_bytes, size_bytes, digest)
    agent.snapshots.add(Shipment(begin, str(path)))
    return path


def test_one_on_its_way_arrives_before_the_goodbye(server: FakeServer, tmp_path: Path) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    path = ship(agent, tmp_path)
    assert agent.stop(Ending(exit_code=0), timeout_s=20)
    kinds = [type(message) for message in server.messages]
    assert kinds.count(SnapshotChunk) == 3
    assert kinds[-1] is Goodbye
    assert kinds.index(SnapshotBegin) < kinds.index(Goodbye)
    assert not path.exists()
    assert server.of_type(Lost)[-1].messages == {}


def test_one_that_no_server_takes_is_lost_and_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = make(f"http://127.0.0.1:{free_port()}", tmp_path)
    agent.start()
    path = ship(agent, tmp_path)
    agent.stop(Ending(exit_code=0), timeout_s=0.5)
    assert not path.exists()
    assert "snapshot s1 was not delivered: the process ended" in capfd.readouterr().err


def test_one_that_a_server_never_answers_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with FakeServer(Behaviour(takes_snapshots=False)) as server:
        agent = make(server.url, tmp_path)
        agent.start()
        server.wait_for(lambda s: s.of_type(Register))
        ship(agent, tmp_path)
        server.wait_for(lambda s: s.of_type(SnapshotBegin))
        assert agent.stop(Ending(exit_code=0), timeout_s=4)
        events = [event.kind for event in server.of_type(Event)]
        assert "snapshot_lost" in events
        assert server.of_type(Lost)[-1].messages == {"snapshot_lost": 1}
        assert server.goodbye is not None
