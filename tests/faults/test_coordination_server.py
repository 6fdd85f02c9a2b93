"""A real server, and a rank, die before a command is decided on; training goes on."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, wait_until
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/coordinated.py"
NAME = "empty_cache+gc_collect"
RUN = "three"
RANKS = 3
OTHERS = [0, 1]


class Job:
    """Three ranks that train, and a real server."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.server = server
        self.api = Api(server.url, server.token)
        self._folder = folder

    def goes_on(self) -> None:
        """Wait until all ranks have trained some more."""
        before = [rank["step"] or 0 for rank in self.ranks()]

        def is_beyond(run: dict[str, Any]) -> bool:
            ranks = run["ranks"]
            if len(ranks) < RANKS or any(rank["state"] != "live" for rank in ranks):
                return False
            # After a restart of the ranks they count anew.
            steps = [rank["step"] or 0 for rank in ranks]
            return all(one > 10 and one != two for one, two in zip(steps, before, strict=True))

        self.api.wait_for_run(RUN, is_beyond, "training to go on", timeout_s=90)

    def ranks(self) -> list[dict[str, Any]]:
        """What the server knows of each."""
        ranks: list[dict[str, Any]] = self.api.get(f"/api/v1/runs/{RUN}")["ranks"]
        return ranks

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        pid: int = self.ranks()[rank]["pid"]
        return pid

    @contextlib.contextmanager
    def prepared_but_for(self, rank: int) -> Iterator[str]:
        """A command that all ranks are ready for but one, which is stopped: its path."""
        os.kill(self.pid(rank), signal.SIGSTOP)
        pid = self.pid(rank)
        try:
            posted = self.api.post(f"/api/v1/runs/{RUN}/commands", {"name": NAME})
            path = f"/api/v1/runs/{RUN}/commands/{posted['id']}"
            wait_until(lambda: self.states(path, OTHERS), _are_prepared, "the others to be ready")
            yield path
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def states(self, path: str, ranks: list[int]) -> list[str]:
        """The state of a command on some ranks."""
        receipts = self.api.get(path)["receipts"]
        return [receipts[str(rank)]["state"] for rank in ranks if str(rank) in receipts]

    def end(self, path: str) -> dict[str, Any]:
        """The command, once it is over on all ranks."""

        def is_over(command: dict[str, Any]) -> bool:
            states = self.states(path, list(range(RANKS)))
            return len(states) == RANKS and not {"queued", "prepared", "running"} & set(states)

        return wait_until(lambda: self.api.get(path), is_over, "the command to end", timeout_s=60)

    def acted(self) -> list[list[int]]:
        """At which steps something was done since this was asked last, says each rank itself."""
        paths = [self._folder / f"acted-{rank}" for rank in range(RANKS)]
        steps = [
            [int(line) for line in path.read_text().split()] if path.exists() else []
            for path in paths
        ]
        for path in paths:
            path.unlink(missing_ok=True)
        return steps

    def takes_a_command(self) -> None:
        """Hold that the next command runs at one step on all ranks."""
        command = self.api.command(RUN, NAME)
        assert command["state"] == "done", command
        (step,) = {receipt["step"] for receipt in command["receipts"].values()}
        assert self.acted() == [[step]] * RANKS


def _are_prepared(states: list[str]) -> bool:
    return states == ["prepared"] * len(OTHERS)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    folder = tmp_path_factory.mktemp("coordinated")
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        api = Api(server.url, server.token)
        script = [str(JOB), str(folder)]
        with torchrun(api, RUN, 0, ["--emulate"], script, ranks=RANKS, restarts=1):
            api.wait_for_run(RUN, lambda run: len(run["ranks"]) == RANKS, "all ranks", timeout_s=90)
            job = Job(server, folder)
            job.goes_on()
            yield job


def test_killed_before_it_has_decided_the_server_drops_it_when_it_is_back(job: Job) -> None:
    with job.prepared_but_for(2) as path:
        job.server.kill()
    job.server.start()
    command = job.end(path)
    assert {receipt["state"] for receipt in command["receipts"].values()} <= {"refused", "expired"}
    job.goes_on()
    assert job.acted() == [[]] * RANKS
    job.takes_a_command()


def test_a_rank_that_is_killed_before_it_is_ready_takes_the_command_with_it(job: Job) -> None:
    with job.prepared_but_for(2) as path:
        os.kill(job.pid(2), signal.SIGKILL)
    command = job.end(path)
    assert "done" not in {receipt["state"] for receipt in command["receipts"].values()}
    job.goes_on()
    assert job.acted() == [[]] * RANKS
    job.takes_a_command()
