"""Policies on a real job: they act when they should, only say so in dry-run mode, and stay."""

from __future__ import annotations

import csv
import io
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import finish, start, watched_command
from tests.support.made_policies import RESERVED, WHEN, policy_body
from tests.support.same_job import write_script
from tests.support.server_app import ServerApp, server_app
from tests.support.server_process import ServerProcess
from vramscope_server.settings import Limits

POLICIES = "/api/v1/policies"
MIB = 1 << 20

JOB = """
import pathlib, sys, time
import torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
while not pathlib.Path(sys.argv[1]).exists():
    model(torch.randn(256, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    cached = torch.empty(64 << 20)  # 256 MiB, which go back into the cache
    del cached
    time.sleep(0.02)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as started:
        yield started


def made(server: ServerProcess, **changes: Any) -> str:
    body = policy_body(run="train", is_on=True, every_s=3600, **changes)
    answer = server.request("POST", POLICIES, body)
    assert answer.status == 201, answer.body
    identity: str = answer.body["id"]
    return identity


def firings(server: ServerProcess, policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"{POLICIES}/{policy}/firings")["firings"]
    return [each for each in found if each["state"] != "waiting"]


@pytest.mark.torch
def test_they_act_say_what_they_would_do_and_survive_a_restart(
    server: ServerProcess, tmp_path: Path
) -> None:
    when = {"series": RESERVED, "op": ">", "value": 100 * MIB}
    acting = made(server, name="acts", when=when, hold={"seconds": 1}, mode="act")
    trying = made(server, name="tries", when=when, hold={"steps": 5})
    logging = made(server, name="logs", when=when, then={"command": "gc_collect"})
    never = made(server, name="never", when=when | {"value": 1 << 60}, mode="act")
    end = tmp_path / "end"
    script = write_script(tmp_path, JOB)
    options = ["--emulate", "--capacity=8GiB"]
    job = start(
        watched_command(
            script, str(end), url=server.url, token=server.token, run="train", options=options
        )
    )
    try:
        (acted,) = server.wait_until(lambda: firings(server, acting), 60)
        (tried,) = server.wait_until(lambda: firings(server, trying), 60)
        (logged,) = server.wait_until(lambda: firings(server, logging), 60)
        run = server.get("/api/v1/runs/train")
        commands = server.get("/api/v1/runs/train/commands")["commands"]
        server.restart()
        server.wait_until(lambda: server.get("/api/v1/runs/train")["ranks_connected"] == 1, 60)
        kept = server.get(POLICIES)["policies"]
        # Its turn comes once an hour: also by the clock of a server that began anew.
        time.sleep(3)
        assert len(firings(server, acting)) == len(firings(server, logging)) == 1
        assert firings(server, never) == []
    finally:
        end.touch()
        code, _output, errors = finish(job)
    assert code == 0, errors

    assert (acted["state"], acted["mode"], acted["run"]) == ("done", "act", run["id"])
    assert "reserved_bytes.all.current was" in acted["why"]
    assert "on rank 0, above 100.0 MiB" in acted["why"]
    assert acted["result"].startswith("empty_cache returned 2")
    assert (tried["state"], tried["mode"]) == ("done", "dry_run")
    assert tried["result"].startswith("empty_cache (dry run) would return")
    assert (logged["state"], logged["result"]) == ("logged", "would have run gc_collect")
    told = {each["id"]: each for each in commands}
    assert set(told) == {acted["command_id"], tried["command_id"]}
    assert (told[acted["command_id"]]["origin"], told[acted["command_id"]]["issued_by"]) == (
        "policy",
        "acts",
    )
    assert told[acted["command_id"]]["receipts"]["0"]["returned_bytes"] >= 200 * MIB
    assert [(each["name"], each["is_on"], each["fired"]) for each in kept] == [
        ("acts", True, 1),
        ("tries", True, 1),
        ("logs", True, 1),
        ("never", True, 0),
    ]

    rows = server.get("/api/v1/audit?run=train")["audit"]
    by_policies = {row["who"]: row for row in rows if row["origin"] == "policy"}
    assert set(by_policies) == {"acts", "tries", "logs"}
    assert [by_policies[who]["dry_run"] for who in ("acts", "tries", "logs")] == [False, True, True]
    assert by_policies["acts"]["result"].startswith("done: empty_cache returned")
    assert by_policies["logs"]["result"].startswith("would have run gc_collect: reserved_bytes")
    assert sum(row["name"] == "policy_create" for row in rows) == 4
    request = urllib.request.Request(
        f"{server.url}/api/v1/audit?format=csv",
        headers={"authorization": f"Bearer {server.token}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        exported = list(csv.DictReader(io.StringIO(answer.read().decode())))
    assert {row["who"] for row in exported} >= {"acts", "tries", "logs"}


def wait_from(server: ServerApp, agent: Any, who: str, *, answer: bool = True) -> Any:
    """Send samples until a command of ``who`` comes."""
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        agent.samples(1)
        agent.wait_acked()  # about once a second
        for command in agent.commands:
            if command.issued_by == who:
                agent.commands.remove(command)
                return command
    raise AssertionError(f"no command of {who} came")


def test_neither_policies_nor_browsers_keep_others_from_being_heard(tmp_path: Path) -> None:
    limits = Limits(policy_interval_s=0.2, command_open=8, command_open_caller=4)
    with server_app(tmp_path, limits) as server, server.agent() as agent:
        for number in range(3):
            body = policy_body(
                name=f"p{number}", is_on=True, mode="act", when=WHEN | {"value": 1}, every_s=10,
                then={"command": "gc_collect"},
            )  # fmt: skip
            assert server.post(POLICIES, body).status_code == 201
        # A browser that asks and asks, and whose commands are never answered.
        viewer = server.make_token("view", name="guest")
        path = "/api/v1/runs/train/commands"
        body = {"name": "stats", "deadline_s": 3600}
        codes = [server.post(path, body, viewer).status_code for _ in range(8)]
        assert codes == [202] * 4 + [429] * 4
        assert wait_from(server, agent, "p2").name == "gc_collect"
        # Policies and that browser have what they may have; a person still gets through.
        assert server.post(path, {"name": "empty_cache"}).status_code == 202
        assert wait_from(server, agent, "owner").name == "empty_cache"


def test_one_that_only_fails_is_switched_off_and_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vramscope_server.policies import firing

    monkeypatch.setattr(firing, "MOST_FAILURES", 1)
    limits = Limits(policy_interval_s=0.2)
    with server_app(tmp_path, limits) as server, server.agent() as agent:
        body = policy_body(is_on=True, mode="act", when=WHEN | {"value": 1})
        policy = server.post(POLICIES, body).json()["id"]
        command = wait_from(server, agent, "tidy up")
        agent.update(command, "refused", message="This job lets nobody do that.")
        agent.wait_acked()
        found = server.wait_until(
            lambda: (shown := server.get(f"{POLICIES}/{policy}"))["off_reason"] and shown
        )
    assert not found["is_on"]
    assert found["off_reason"].endswith("This job lets nobody do that.")
