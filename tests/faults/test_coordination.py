"""Whatever breaks between a command's preparation and its decision, all ranks end on one side.

One job of three ranks goes through all of it, and trains on. The server is made up, so that each
thing breaks at the moment that matters. What was done, the job tells by itself.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.fake_server import wait_until
from tests.support.job_process import REPOSITORY, Api
from tests.support.rank_server import RankServer
from tests.support.torchrun import torchrun
from vramscope_protocol.messages import Command, Decision

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/coordinated.py"
NAME = "empty_cache+gc_collect"
RANKS = 3


class Job:
    """Three ranks that train, and the server that they are connected to."""

    def __init__(self, server: RankServer, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self._prepared = 0
        self.identity = ""
        self.at_step = 0

    def prepare(self, lead: int = 30, hold_s: float = 20.0) -> None:
        """Have all ranks prepare a new command for a step that is still to come."""
        self.begin()
        while True:
            self.ask_all(self.server.step() + lead, hold_s)
            answers = [self.answer(rank) for rank in range(RANKS)]
            if answers == ["prepared"] * RANKS:
                return
            # As a server does: it was over on a rank that was quick, or this machine is slow.
            self.decide(run=False, reason="again")
            lead *= 2

    def begin(self) -> None:
        """The next command is a new one."""
        self._prepared += 1
        self.identity = f"c{self._prepared}"

    def ask_all(self, at_step: int, hold_s: float = 20.0) -> None:
        """Send the command, maybe once more."""
        self.ask(at_step, range(RANKS), hold_s)

    def ask(self, at_step: int, ranks: Iterable[int], hold_s: float = 20.0) -> None:
        """Send it to some ranks."""
        self.at_step = at_step
        self.server.tell(Command(self.identity, NAME, at_step=at_step, hold_s=hold_s), ranks)

    def answer(self, rank: int) -> str:
        """What a rank says to the command for this step."""
        self.server.wait_for(lambda _: self._answers(rank))
        return self._answers(rank)[-1]

    def _answers(self, rank: int) -> list[str]:
        updates = self.server.updates(rank, self.identity)
        return [each.state for each in updates if each.at_step == self.at_step]

    def decide(self, *ranks: int, run: bool = True, reason: str = "") -> None:
        """Tell ranks, or all of them, what becomes of it."""
        decision = Decision(self.identity, self.at_step, run=run, reason=reason)
        self.server.tell(decision, ranks or None)

    def all_have_done_it(self) -> None:
        """Wait for the receipts, and hold that each rank did it once, at the same step."""
        self.server.wait_for_state(self.identity, "done")
        assert self.acted() == [[self.at_step]] * RANKS

    def none_has_done_it(self, *states: str) -> None:
        """The same for a command that was dropped."""
        self.server.wait_for(lambda _: set(self.last_states()) <= set(states))
        self.goes_on()
        assert self.acted() == [[]] * RANKS

    def last_state(self, rank: int) -> str:
        """What a rank has said last of the command."""
        return (self.server.states(rank, self.identity) or [""])[-1]

    def last_states(self) -> list[str]:
        """The same of all."""
        return [self.last_state(rank) for rank in range(RANKS)]

    def acted(self) -> list[list[int]]:
        """At which steps something was done since this was asked last, on each rank."""
        paths = [self._folder / f"acted-{rank}" for rank in range(RANKS)]
        steps = [
            [int(line) for line in path.read_text().split()] if path.exists() else []
            for path in paths
        ]
        for path in paths:
            path.unlink(missing_ok=True)
        return steps

    def goes_on(self) -> None:
        """Wait until every rank has trained beyond the step of the command."""
        beyond = self.at_step + 3
        wait_until(lambda: min(self.steps()) > beyond, "training to go on", 30)

    def steps(self) -> list[int]:
        """The steps that each rank has finished."""
        return [self.server.step(rank) for rank in range(RANKS)]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    folder = tmp_path_factory.mktemp("coordinated")
    with RankServer(RANKS) as server:
        api = Api(server.url, server.token)
        script = [str(JOB), str(folder)]
        with torchrun(api, "three", 0, ["--emulate"], script, ranks=RANKS, restarts=1):
            server.wait_for_ranks()
            job = Job(server, folder)
            job.goes_on()
            yield job


def test_decided_in_time_it_is_done_at_one_step(job: Job) -> None:
    job.prepare()
    job.decide()
    job.all_have_done_it()


def test_a_word_that_comes_twice_counts_once(job: Job) -> None:
    job.prepare()
    job.ask_all(job.at_step)
    for _ in range(2):
        job.decide()
    job.all_have_done_it()
    job.ask_all(job.at_step)
    job.decide()
    job.goes_on()
    assert job.acted() == [[]] * RANKS


def test_a_decision_that_comes_late_finds_training_standing_still(job: Job) -> None:
    job.prepare(lead=5)
    wait_until(lambda: set(job.steps()) == {job.at_step}, "training to stand still")
    job.decide()
    job.all_have_done_it()


def test_a_rank_that_is_cut_off_does_what_the_others_do(job: Job) -> None:
    job.prepare()
    with job.server.without(2):
        job.decide(0, 1)
        job.server.wait_for_state(job.identity, "done", [0, 1])
    job.all_have_done_it()


def test_a_rank_that_is_cut_off_drops_what_the_others_drop(job: Job) -> None:
    job.prepare()
    with job.server.without(2):
        job.decide(0, 1, run=False, reason="Rank 2 is lost.")
        job.server.wait_for_state(job.identity, "refused", [0, 1])
    job.none_has_done_it("refused")


def test_one_rank_that_has_heard_it_is_enough(job: Job) -> None:
    job.prepare(lead=15)
    job.decide(2)
    job.server.stop()
    time.sleep(1.0)  # long enough for all to get to the step without a server
    job.server.start()
    job.server.wait_for_ranks()
    job.all_have_done_it()


def test_a_server_that_is_gone_before_it_has_decided_has_dropped_it(job: Job) -> None:
    job.prepare(lead=15, hold_s=1.0)
    job.server.stop()
    job.server.start()
    job.server.wait_for_ranks()
    job.none_has_done_it("expired", "refused")
    # The word of a server that has come too late is none.
    job.decide()
    job.goes_on()
    assert job.acted() == [[]] * RANKS


def test_a_rank_that_is_slow_is_waited_for(job: Job) -> None:
    job.prepare()
    os.kill(job.server.pid(1), signal.SIGSTOP)
    try:
        job.decide()
        time.sleep(1.0)
    finally:
        os.kill(job.server.pid(1), signal.SIGCONT)
    job.all_have_done_it()


def test_a_rank_that_is_slower_than_the_others_wait_finds_it_dropped(job: Job) -> None:
    job.prepare(lead=15, hold_s=0.5)
    os.kill(job.server.pid(1), signal.SIGSTOP)
    try:
        job.decide(1)
        time.sleep(1.5)
    finally:
        os.kill(job.server.pid(1), signal.SIGCONT)
    # Who was there first, those that stood still or the slow one with its word: all do the same.
    final = [{"done"}, {"refused", "expired"}]
    job.server.wait_for(lambda _: any(set(job.last_states()) <= states for states in final))
    job.goes_on()
    was_run = job.last_state(0) == "done"
    assert job.acted() == [[job.at_step] if was_run else []] * RANKS


def test_where_the_step_is_over_on_some_it_is_done_at_a_later_one_by_all(job: Job) -> None:
    job.begin()
    job.ask(job.server.step() + 30, [0, 1])
    # They stand still, and so the others come no farther than into the next step.
    wait_until(lambda: set(job.steps()) == {job.at_step}, "all to be there")
    job.ask(job.at_step, [2])
    assert [job.answer(rank) for rank in range(RANKS)] == ["prepared", "prepared", "refused"]
    job.decide(run=False, reason="again")
    job.ask_all(job.at_step + 50)
    assert [job.answer(rank) for rank in range(RANKS)] == ["prepared"] * RANKS
    job.decide()
    job.all_have_done_it()


def test_a_rank_that_is_killed_takes_it_down_with_it_and_training_begins_anew(job: Job) -> None:
    job.prepare(lead=15)
    dead = job.server.pid(1)
    os.kill(dead, signal.SIGKILL)
    job.server.wait_for(lambda _: job.server.pid(1) != dead, 90)
    job.server.wait_for_ranks()
    # The launcher has started all of them again: none knows of it, and a word on it means nothing.
    job.decide()
    job.at_step = 0  # they count anew
    job.goes_on()
    assert job.acted() == [[]] * RANKS
    job.prepare()
    job.decide()
    job.all_have_done_it()
