"""Agents that want another run: with another token, and with the same one, at a real server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.scripted_agent import ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from tests.support.wire_ooms import wire_oom
from vramscope_protocol.claims import report_proof
from vramscope_protocol.errors import FORBIDDEN, RANK_TAKEN, REPLACED
from vramscope_protocol.messages import Error, SnapshotBegin, SnapshotChunk
from vramscope_server.store import tokens
from vramscope_server.store.database import Database

LAUNCH, TREE = "what the launch knows", "what its process knows"
TOKENS = ("another token", "the same token")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all tests: each has runs of its own."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def run() -> str:
    """Id of the run that is wanted."""
    return uuid.uuid4().hex[:12]


@pytest.fixture
def other() -> str:
    """Id of a run of the hostile agent's own."""
    return uuid.uuid4().hex[:12]


@pytest.fixture
def victim(server: ServerProcess, run: str) -> Iterator[ScriptedAgent]:
    """Rank 0 of 2, which trains and is connected."""
    agent = socket_agent(server.url, world_size=2, run_id=run)
    agent.run_secret, agent.seat_secret = LAUNCH, TREE
    with agent:
        agent.samples(3)
        agent.wait_acked()
        yield agent


def hostile(server: ServerProcess, token: str, **options: Any) -> ScriptedAgent:
    """An agent with the same token, or with one of its own; not yet connected."""
    secret = server.token if token == "the same token" else made_token(server)
    return socket_agent(server.url, secret, **options)


def made_token(server: ServerProcess) -> str:
    database = Database.open(server.database)
    with database.write() as connection:
        secret, _record = tokens.create_token(connection, "hostile", ["agent"], 1)
    database.close()
    return secret


def refusal(agent: ScriptedAgent) -> str:
    """Connect and be refused; the code that the server says."""
    wire = agent._open_wire()
    try:
        for frame in agent.session.opening_frames():
            with suppress(ConnectionClosed):
                wire.send(frame)
        message = agent.session.receive(wire.receive(10))
        assert isinstance(message, Error), message
        with pytest.raises(ConnectionClosed):
            wire.receive(10)
    finally:
        wire.close()
    return message.code


def as_it_says(agent: ScriptedAgent) -> ScriptedAgent:
    """Take what was set on it since into its opening words."""
    agent.session = type(agent.session)(agent.token, agent._register())
    return agent


def untouched(server: ServerProcess, victim: ScriptedAgent) -> None:
    """The victim's run is as before, and is still its own."""
    victim.samples(1)
    victim.wait_acked()
    path = f"/api/v1/runs/{victim.run.id}"
    told = server.get(path)
    assert [rank["stream"] for rank in told["ranks"]] == [victim.stream]
    assert (told["name"], told["ranks"][0]["connected"]) == ("train", True)
    posted = server.request("POST", f"{path}/commands", {"name": "gc_collect"})
    assert posted.status == 202, posted
    victim.update(victim.wait_command(), "done")
    victim.wait_acked()
    found = server.get(f"{path}/commands/{posted.body['id']}")
    assert found["state"] == "done"


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("rank", [0, 1])
def test_it_takes_no_rank_of_another_run(
    server: ServerProcess, victim: ScriptedAgent, token: str, rank: int, run: str
) -> None:
    agent = hostile(server, token, rank=rank, world_size=2, run="mine", run_id=run)
    agent.seat_secret = "its own"
    assert refusal(as_it_says(agent)) == FORBIDDEN
    if token == "another token":
        agent.run_secret, agent.seat_secret = LAUNCH, TREE
        assert refusal(as_it_says(agent)) == FORBIDDEN
    untouched(server, victim)


@pytest.mark.parametrize("token", TOKENS)
def test_it_does_not_go_on_with_anothers_stream(
    server: ServerProcess, victim: ScriptedAgent, token: str, run: str
) -> None:
    """The stream's name is no secret: whoever may view sees it."""
    for launch in ("", LAUNCH):
        agent = hostile(server, token, world_size=2, run_id=run)
        agent.stream, agent.run_secret = victim.stream, launch
        assert refusal(as_it_says(agent)) == FORBIDDEN
    untouched(server, victim)


def test_who_knows_the_launch_and_has_the_token_takes_no_seat_of_a_living_process(
    server: ServerProcess, victim: ScriptedAgent, run: str
) -> None:
    agent = hostile(server, "the same token", world_size=2, run_id=run)
    agent.run_secret, agent.seat_secret = LAUNCH, "its own"
    assert refusal(as_it_says(agent)) == RANK_TAKEN
    untouched(server, victim)
    victim.close()
    # Its launcher has started it again, in another process.
    server.wait_until(lambda: not server.get(f"/api/v1/runs/{run}")["ranks"][0]["connected"])
    with agent:
        agent.samples(1)
        agent.wait_acked()


def test_a_child_takes_the_place_of_the_parent_and_ends_it(
    server: ServerProcess, victim: ScriptedAgent, run: str
) -> None:
    child = socket_agent(server.url, world_size=2, run_id=run)
    child.run_secret, child.seat_secret = LAUNCH, TREE
    with child:
        child.samples(1)
        child.wait_acked()
        told = server.get(f"/api/v1/runs/{run}")
        assert told["ranks"][0]["stream"] == child.stream


def test_the_process_itself_comes_back_after_a_cut_and_after_a_restart_of_the_server(
    server: ServerProcess, victim: ScriptedAgent, run: str
) -> None:
    newer = socket_agent(server.url, world_size=2, run_id=run)
    newer.stream, newer.run_secret, newer.seat_secret = victim.stream, LAUNCH, TREE
    with newer:  # the old connection is not closed yet
        while not isinstance(message := victim.receive(), Error):
            pass
        assert message.code == REPLACED
    victim.close()
    server.restart()
    victim.open()
    untouched(server, victim)
    # What the server keeps outlives it.
    for token in TOKENS:
        agent = hostile(server, token, rank=1, world_size=2, run_id=run)
        assert refusal(agent) == FORBIDDEN


@pytest.mark.parametrize("token", TOKENS)
def test_it_delivers_no_report_for_another_run(
    server: ServerProcess, victim: ScriptedAgent, token: str, run: str, other: str
) -> None:
    begin, data = wire_oom(f"oom-{run}", run=run)
    begin.run = run
    with hostile(server, token, run="other", run_id=other) as agent:
        for proof in ("", report_proof("", begin.id), report_proof("guessed", begin.id)):
            begin.proof = proof
            assert "somebody else's" in agent.oom(begin, data).refused
        begin.proof = report_proof(LAUNCH, begin.id)
        taken = agent.oom(begin, data)
    # A process that was killed can prove it, to the token that it came with.
    assert bool(taken.refused) is (token == "another token")
    expected = [] if taken.refused else [begin.id]
    assert [each["id"] for each in server.get(f"/api/v1/runs/{run}/ooms")["ooms"]] == expected


def test_it_gets_not_in_the_way_of_a_report_whose_name_it_has_seen(
    server: ServerProcess, victim: ScriptedAgent, run: str, other: str
) -> None:
    begin, data = wire_oom(f"oom-{run}", run=run, threads=[{"name": "x" * 3000, "frames": []}])
    theirs, their_data = wire_oom(begin.id, run=other)
    begin.run, theirs.run = run, other
    with hostile(server, "the same token", run="other", run_id=other) as agent:
        victim.oom(begin, data, pieces=2)
        agent.oom(theirs, their_data, pieces=0)
        agent.send(SnapshotChunk(begin.id, 2000, b"mine"))
        agent.wait_snapshot_ack()
        victim.send(SnapshotChunk(begin.id, 2000, data[2000:2100]))
        assert victim.wait_snapshot_ack().offset == 2100
        assert victim.oom(begin, data).offset == len(data)
    (row,) = server.get(f"/api/v1/runs/{run}/ooms")["ooms"]
    assert row["raw_bytes"] == len(data)
    assert server.get(f"/api/v1/runs/{other}/ooms")["ooms"] == []


@pytest.mark.parametrize("token", TOKENS)
def test_its_own_messages_are_of_its_own_run(
    server: ServerProcess, victim: ScriptedAgent, token: str, run: str, other: str
) -> None:
    """Batches, events, receipts and snapshots name no run: they are of that of the connection."""
    posted = server.request("POST", f"/api/v1/runs/{run}/commands", {"name": "gc_collect"})
    received = victim.wait_command()
    with hostile(server, token, run="other", run_id=other) as agent:
        agent.samples(5)
        agent.event("oom", "mine", report="o1")
        agent.update(received, "done", message="I did it")
        agent.wait_acked()
        agent.send(SnapshotBegin("snap", time.time_ns(), 100, 50, "0" * 64))
        agent.wait_snapshot_ack()
        assert agent.commands == []
        told = server.get(f"/api/v1/runs/{run}")
        assert told["ranks"][0]["samples_received"] == 3
        assert server.get(f"/api/v1/runs/{run}/snapshots")["snapshots"] == []
        events = server.get(f"/api/v1/runs/{run}/events")["events"]
        assert "mine" not in [event["text"] for event in events]
        found = server.get(f"/api/v1/runs/{run}/commands/{posted.body['id']}")
        assert found["receipts"] == {}
