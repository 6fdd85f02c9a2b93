"""What goes on is polled, ends once, and is always answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.commands.ongoing_commands import PROGRESS_INTERVAL_S, OngoingCommands
from vramscope_protocol.commands import Receipt


class Counting:
    """Goes on for some steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.polls: list[int] = []
        self.cancelled: list[str] = []
        self.written: Receipt | None = None
        self.on_poll: Callable[[], None] = lambda: None
        self.on_cancel: Callable[[], None] = lambda: None

    @property
    def progress(self) -> str:
        return f"{len(self.polls)} of {self.steps} steps"

    def poll(self, step: int) -> Receipt | None:
        self.polls.append(step)
        self.on_poll()
        return Receipt("done", message="all") if len(self.polls) >= self.steps else None

    def poll_on_agent_thread(self) -> Receipt | None:
        return self.written

    def cancel(self, reason: str) -> Receipt:
        self.cancelled.append(reason)
        self.on_cancel()
        return Receipt("failed", message=f"{reason}: {self.progress}")


class Rig:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.updates: list[tuple[str, str, Receipt]] = []
        self.commands = OngoingCommands(
            self.clock,
            lambda identity, state, receipt: self.updates.append((identity, state, receipt)),
        )

    def states(self, identity: str = "a") -> list[str]:
        return [state for each, state, _ in self.updates if each == identity]


def test_it_is_polled_at_each_boundary_until_its_receipt() -> None:
    rig, going = Rig(), Counting(3)
    rig.commands.add("a", going, 30, 7)
    assert [rig.commands.poll(step) for step in (8, 9, 10, 11)] == [False, False, True, False]
    assert going.polls == [8, 9, 10]
    assert rig.states() == ["done"]
    assert rig.updates[0][2].step == 10
    assert not rig.commands


def test_what_finishes_between_boundaries_is_heard_on_the_agents_thread() -> None:
    rig, going = Rig(), Counting(100)
    rig.commands.add("a", going, 30, 7)
    rig.commands.poll_on_agent_thread()
    assert rig.states() == []
    going.written = Receipt("done")
    rig.commands.poll_on_agent_thread()
    assert rig.states() == ["done"]
    assert rig.updates[0][2].step == 7
    assert going.cancelled == []


def test_each_boundary_gives_it_the_time_to_the_next() -> None:
    rig, going = Rig(), Counting(100)
    rig.commands.add("a", going, 5, 7)
    for step in range(8, 12):
        rig.clock.advance(4)
        rig.commands.expire()
        rig.commands.poll(step)
    assert "failed" not in rig.states()
    rig.clock.advance(5)
    rig.commands.expire()
    assert rig.states()[-1] == "failed"
    assert going.cancelled == ["no optimizer step within 5 s"]
    assert rig.updates[-1][2].message == "no optimizer step within 5 s: 4 of 100 steps"


def test_a_poll_of_the_agents_thread_is_no_boundary() -> None:
    rig, going = Rig(), Counting(100)
    rig.commands.add("a", going, 5, 7)
    rig.clock.advance(4)
    rig.commands.poll_on_agent_thread()
    rig.clock.advance(1)
    rig.commands.expire()
    assert rig.states() == ["failed"]


def test_it_says_now_and_then_how_far_it_is() -> None:
    rig = Rig()
    rig.commands.add("a", Counting(100), 60, 7)
    rig.commands.poll(8)
    assert rig.updates == []
    rig.clock.advance(PROGRESS_INTERVAL_S)
    rig.commands.poll(9)
    rig.commands.poll(10)
    assert [(state, receipt.message) for _, state, receipt in rig.updates] == [
        ("running", "2 of 100 steps")
    ]


def test_a_part_of_the_answer_is_told_and_it_goes_on() -> None:
    rig, going = Rig(), Counting(3)
    rig.commands.add("a", going, 30, 7)
    rig.commands.poll(8)
    going.written = Receipt("running", message="the lines", result={"groups": []})
    rig.commands.poll_on_agent_thread()
    going.written = None
    rig.commands.poll(9)
    rig.commands.poll(10)
    assert rig.states() == ["running", "done"]
    told = rig.updates[0][2]
    assert (told.step, told.message, told.result) == (8, "the lines", {"groups": []})


def test_what_goes_wrong_in_a_poll_undoes_it() -> None:
    rig, going = Rig(), Counting(100)

    def fail() -> None:
        raise RuntimeError("out of luck")

    going.on_poll = fail
    rig.commands.add("a", going, 30, 7)
    assert rig.commands.poll(8)
    assert going.cancelled == ["RuntimeError: out of luck"]
    assert rig.states() == ["failed"]


def test_ctrl_c_undoes_it_and_goes_on_to_the_job() -> None:
    rig, going = Rig(), Counting(100)

    def interrupt() -> None:
        raise KeyboardInterrupt

    going.on_poll = interrupt
    rig.commands.add("a", going, 30, 7)
    with pytest.raises(KeyboardInterrupt):
        rig.commands.poll(8)
    assert going.cancelled == ["interrupted by the job while it ran"]
    assert rig.states() == ["failed"]


def test_one_that_cannot_even_be_ended_is_answered() -> None:
    rig, going = Rig(), Counting(100)

    def fail() -> None:
        raise OSError("gone")

    going.on_cancel = fail
    rig.commands.add("a", going, 30, 7)
    rig.commands.close("the process ended")
    assert rig.updates[0][2].message == "the process ended; ending it failed: OSError: gone"


def test_closing_ends_all_and_whatever_comes_later() -> None:
    rig, first, second = Rig(), Counting(100), Counting(100)
    rig.commands.add("a", first, 30, 7)
    rig.commands.close("detached")
    rig.commands.add("b", second, 30, 7)
    assert first.cancelled == second.cancelled == ["detached"]
    assert rig.states("a") == rig.states("b") == ["failed"]
    assert not rig.commands


def test_closing_during_a_poll_ends_it_after_the_poll() -> None:
    rig, going = Rig(), Counting(100)
    going.on_poll = lambda: rig.commands.close("detached")
    rig.commands.add("a", going, 30, 7)
    rig.commands.poll(8)
    assert going.cancelled == ["detached"]
    assert rig.states() == ["failed"]


def test_one_that_ends_is_not_ended_again_by_whom_it_meets() -> None:
    rig, going = Rig(), Counting(1)
    going.on_poll = lambda: rig.commands.expire()
    rig.commands.add("a", going, 0, 7)
    rig.commands.poll(8)
    assert rig.states() == ["done"]
    assert going.cancelled == []
