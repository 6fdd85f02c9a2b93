"""A person pauses, resumes and stops: through the whole queue, on a thread that trains."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_server import wait_until
from tests.support.recording_outbox import RecordingOutbox
from vramscope.commands.part import CommandPart
from vramscope.config import load_config
from vramscope.sampling.clock import Clock
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Command, Decision, Welcome


class Job:
    """Ends steps on a thread of its own."""

    def __init__(self) -> None:
        self.outbox = RecordingOutbox()
        self.step = 0
        self.part = CommandPart(
            load_config({}),
            FakeDevice(),
            {},
            clock=Clock(),
            emit=self.outbox.put,
            step=lambda: self.step,
            on_change=lambda: None,
        )

    def take(self, identity: str, name: str, **more: Any) -> None:
        self.part.take(Command(identity, name, **more))

    def end_step(self) -> None:
        self.step += 1
        self.part.queue.run_at_boundary(self.step)

    def receipt(self, identity: str) -> Receipt:
        receipt = self.outbox.updates(identity)[-1].receipt
        assert receipt is not None
        return receipt


def test_toward_a_server_that_others_can_reach_nothing_acts_from_the_welcome_on() -> None:
    job = Job()
    assert "stop" in job.part.queue.accepted()
    job.part.allowance.take(Welcome(1, 0, reachable=True))
    job.take("s", "stop")
    assert job.receipt("s").state == "refused"
    assert "--allow control" in job.receipt("s").message
    assert "stop" not in job.part.queue.accepted()
    assert "stacks" in job.part.queue.accepted()


@pytest.fixture
def paused() -> Any:
    """A job that stands still."""
    job = Job()
    job.take("p", "pause", params={"max_s": 60})
    thread = threading.Thread(target=job.end_step)
    thread.start()
    wait_until(lambda: "running" in job.outbox.states("p"), "the pause")
    yield job
    job.part.close("the test is over")
    thread.join(5)
    assert not thread.is_alive()


def goes_on(job: Job, because: str) -> None:
    wait_until(lambda: "done" in job.outbox.states("p"), "training to go on")
    assert job.receipt("p").message.endswith(f"until {because}.")


def test_it_is_resumed_on_the_agents_thread(paused: Job) -> None:
    paused.take("r", "resume")
    assert paused.outbox.states("p") == ["queued", "running"]
    paused.part.queue.run_on_agent_thread(paused.step)
    goes_on(paused, "it was resumed")
    assert paused.receipt("r").message == "Training goes on."


def test_a_stop_lets_it_go_on_to_the_end_of_a_step(paused: Job) -> None:
    paused.take("s", "stop")
    goes_on(paused, "it was told to stop")


@pytest.mark.parametrize("run", [True, False])
def test_a_stop_on_all_ranks_does_so_once_it_is_decided(paused: Job, run: bool) -> None:
    paused.take("s", "stop", at_step=4)
    assert paused.outbox.states("s") == ["prepared"]
    assert paused.outbox.states("p") == ["queued", "running"]
    paused.part.take(Decision("s", 4, run=run, reason="" if run else "Rank 1 is lost."))
    if run:
        goes_on(paused, "it was told to stop")
    else:
        assert paused.outbox.states("p") == ["queued", "running"]


def test_an_agent_that_leaves_lets_it_go_on(paused: Job) -> None:
    paused.part.close("the process ended")
    goes_on(paused, "the agent has left")


def test_stacks_come_while_training_stands_still(paused: Job) -> None:
    paused.take("t", "stacks")
    paused.part.queue.run_on_agent_thread(paused.step)
    assert "in _pause" in paused.receipt("t").result
