"""The training thread is followed from batch to batch, and no other thread is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.recording_outbox import RecordingOutbox
from vramscope.collectors.self_cost import SelfCost
from vramscope.notices import Notices
from vramscope.phases.evaluation import Evaluation
from vramscope.phases.phases import Phases
from vramscope.steps.fetches import Fetches
from vramscope_protocol.columns import UNKNOWN

DATA_WAIT = 3


class Autograd:
    """Gradients are on, and nothing is ever recorded."""

    def is_on(self) -> bool:
        return True

    def recorded(self) -> int:
        return 0


class Rig:
    """Fetches whose clock the test moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.outbox = RecordingOutbox()
        self.phases = Phases(self.clock, self.outbox.put, Notices())
        self.self_cost = SelfCost(lambda: 0)
        evaluation = Evaluation(self.phases, Autograd())
        self.fetches = Fetches(self.phases, self.clock, self.self_cost, evaluation)

    def fetch(self, seconds: float) -> int:
        """One batch; the phase of the process while it is waited for."""
        self.fetches.before(iter([]))
        self.clock.advance(seconds)
        code = self.phases.code()
        self.fetches.after(is_over=False)
        return code


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_waits_of_a_step_add_up_and_are_a_phase_meanwhile(rig: Rig) -> None:
    assert rig.fetches.take_wait_us() == UNKNOWN
    assert [rig.fetch(0.2), rig.fetch(0.1)] == [DATA_WAIT] * 2
    assert rig.phases.code() != DATA_WAIT
    assert rig.fetches.take_wait_us() == 300_000
    assert rig.fetches.take_wait_us() == 0


def test_only_a_long_wait_is_told(rig: Rig) -> None:
    rig.fetch(0.4)
    rig.clock.advance(1)
    start_ns = rig.clock.time_ns()
    rig.fetch(0.6)
    rig.phases.close()
    (event,) = rig.outbox.messages
    assert (event.data["phase"], event.data["start_ns"]) == ("data_wait", start_ns)


def test_what_another_thread_fetches_ahead_is_no_wait(rig: Rig) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(rig.fetch(1)))
    thread.start()
    thread.join(10)
    assert codes == [UNKNOWN]
    assert rig.fetches.take_wait_us() == UNKNOWN


def test_the_training_thread_is_the_one_that_steps(rig: Rig) -> None:
    seen: list[Any] = []

    def train() -> None:
        rig.fetches.optimizer_stepped()
        seen.append(rig.fetch(1))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(10)
    assert seen == [DATA_WAIT]
    assert not rig.fetches.is_training_thread()
    rig.fetch(5)
    assert rig.fetches.take_wait_us() == 1_000_000


def test_the_hooks_time_is_charged_to_the_agent(rig: Rig) -> None:
    rig.fetch(1)
    assert rig.self_cost.cpu_ns() > 0
