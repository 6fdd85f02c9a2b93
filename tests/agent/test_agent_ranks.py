"""An agent whose process turns out to be another rank, or none."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from tests.support.told_agent import numbered, tick
from vramscope.identity.seat import claim_seat
from vramscope.lifecycle import Ending
from vramscope_protocol.messages import Event, Goodbye, Register


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def kinds(server: FakeServer) -> list[str]:
    return [m.kind for m in server.of_type(Event)]


def test_what_turns_out_to_be_another_rank_goes_on_in_a_stream_of_its_own(
    server: FakeServer, tmp_path: Path
) -> None:
    agent, numbers = numbered(server, tmp_path)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    numbers.become(3, 8, run_id="another")
    tick(agent)
    agent.outbox.put(Event(0, 1, "of the new rank"))
    server.wait_for(lambda s: s.goodbye and "of the new rank" in kinds(s))
    assert agent.stop(timeout_s=10)
    first, second = server.of_type(Register)
    assert (first.rank.rank, second.rank.rank) == (0, 3)
    assert (second.run.id, second.run.world_size) == ("another", 8)
    assert first.stream != second.stream
    left, last = server.of_type(Goodbye)
    assert left.reason == last.reason == "detach"
    assert left.text == f"process {os.getpid()} is rank 3 of 8 of run train"
    assert (left.seq, last.seq) == (2, 4)  # each stream has its own numbers
    assert agent.identity.rank == 3


def test_a_rank_that_learns_how_many_there_are_stays_what_it_is(
    server: FakeServer, tmp_path: Path
) -> None:
    agent, numbers = numbered(server, tmp_path)
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    numbers.become(0, 8)
    tick(agent)
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    assert agent.stop(timeout_s=10)
    first, second = server.of_type(Register)
    assert first.stream == second.stream
    assert (first.run.world_size, second.run.world_size) == (1, 8)
    assert len(server.of_type(Goodbye)) == 1


def test_a_rank_that_is_known_before_any_server_is_has_never_been_another(
    tmp_path: Path,
) -> None:
    with FakeServer() as server:
        server.stop()
        agent, numbers = numbered(server, tmp_path)
        agent.start()
        numbers.become(2, 4)
        tick(agent)
        server.start()
        server.wait_for(
            lambda s: [r for r in s.of_type(Register) if r.rank.rank == 2], timeout_s=30
        )
        assert agent.stop(timeout_s=10)
    # The first attempt to connect may have been made before or after.
    assert {register.rank.rank for register in server.of_type(Register)} <= {0, 2}
    assert server.of_type(Register)[-1].rank.rank == 2


def test_who_started_the_rank_that_it_seemed_to_be_leaves_once(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    superseded = threading.Event()
    agent, _ = numbered(server, tmp_path, on_superseded=lambda _: superseded.set())
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    tick(agent)
    assert not superseded.is_set()
    claim_seat(os.getpid())
    tick(agent)
    assert superseded.wait(10)
    superseded.clear()
    claim_seat(os.getpid())
    tick(agent)
    assert agent.stop(timeout_s=10, why="they are the ranks")
    assert not superseded.is_set()
    assert server.goodbye is not None
    assert (server.goodbye.reason, server.goodbye.text) == ("detach", "they are the ranks")


def test_who_ends_right_after_its_rank_0_has_come_is_no_rank_either(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    agent, _ = numbered(server, tmp_path, on_superseded=lambda _: None)
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    claim_seat(os.getpid())
    assert agent.stop(Ending(exit_code=0), timeout_s=10)
    assert server.goodbye is not None
    assert (server.goodbye.reason, server.goodbye.exit_code) == ("detach", None)
    assert list((tmp_path / "vramscope").glob("rank0-*")) == []


def test_rank_0_tells_its_parent_once_however_often_it_connects(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    agent, numbers = numbered(server, tmp_path)
    numbers.become(0, 2, launcher="spawn")
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    # As the parent does, which is not there any more for a second one.
    (told,) = (tmp_path / "vramscope").glob("rank0-*")
    told.unlink()
    numbers.become(0, 2, launcher="spawn", local_rank=1)
    tick(agent)
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    assert agent.stop(timeout_s=10)
    assert list((tmp_path / "vramscope").glob("rank0-*")) == []


def test_it_does_not_come_to_a_server_after_the_rank_itself(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    claim_seat(os.getpid())
    superseded = threading.Event()
    agent, _ = numbered(server, tmp_path, on_superseded=lambda _: superseded.set())
    agent.start()
    assert superseded.wait(10)
    assert agent.stop(timeout_s=10)
    assert server.connections == 0
