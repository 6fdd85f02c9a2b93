"""A command runs once, in its place, before its deadline, and its fate is always told."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_store import FakeStore
from tests.support.recording_outbox import RecordingOutbox
from vramscope.commands.agreement import Agreement
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import MAX_WAITING, CommandQueue
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Command, Decision


class Rig:
    """A queue over a fake device."""

    def __init__(
        self,
        allow: Literal["observe", "control"] = "control",
        allow_commands: frozenset[str] | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.device = FakeDevice()
        self.outbox = RecordingOutbox()
        self.samples = 0
        self.step = 0
        self.coming: list[str] = []
        store = FakeStore()
        self.queue = CommandQueue(
            CommandHandlers(self.device),
            clock=self.clock,
            emit=self.outbox.put,
            allow=allow,
            allow_commands=allow_commands,
            on_change=self._sample,
            step=lambda: self.step,
            on_coming=self.coming.append,
            agreement=Agreement(lambda: store),
        )

    def _sample(self) -> None:
        self.samples += 1

    def submit(self, identity: str, name: str = "empty_cache", **more: Any) -> None:
        self.queue.submit(Command(id=identity, name=name, **more))

    def decide(self, identity: str, at_step: int, *, run: bool, reason: str = "") -> None:
        self.queue.decide(Decision(identity, at_step, run=run, reason=reason))

    def end_steps(self, count: int = 1) -> None:
        for _ in range(count):
            self.step += 1
            self.queue.run_at_boundary(self.step)

    def receipt(self, identity: str) -> Receipt:
        receipt = self.outbox.updates(identity)[-1].receipt
        assert receipt is not None
        return receipt


def test_a_changing_command_waits_for_the_end_of_a_step() -> None:
    rig = Rig()
    rig.submit("a")
    rig.queue.run_on_agent_thread(6)
    assert rig.device.calls == []
    rig.queue.run_at_boundary(7)
    assert rig.outbox.states("a") == ["queued", "running", "done"]
    assert rig.receipt("a").step == 7
    rig.queue.run_at_boundary(8)
    assert rig.device.calls == ["empty_cache"]
    assert rig.samples == 1


def test_only_what_changes_memory_asks_for_a_sample() -> None:
    rig = Rig()
    rig.submit("a", dry_run=True)
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a")[-1] == "done"
    assert rig.samples == 0


def test_a_reading_command_does_not_wait() -> None:
    rig = Rig()
    rig.submit("a", "memory_summary")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued"]
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("a") == ["queued", "running", "done"]


def test_while_the_device_is_busy_it_waits_for_the_next_step() -> None:
    rig = Rig()
    rig.device.reason = "a CUDA graph is being captured"
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued"]
    rig.device.reason = None
    rig.queue.run_at_boundary(2)
    assert rig.receipt("a").step == 2


def test_without_a_step_it_expires_and_says_that_nothing_was_changed() -> None:
    rig = Rig()
    rig.submit("a", deadline_s=30)
    rig.clock.advance(29.9)
    rig.queue.run_on_agent_thread(0)
    assert rig.outbox.states("a") == ["queued"]
    rig.clock.advance(0.2)
    rig.queue.run_on_agent_thread(0)
    assert rig.outbox.states("a") == ["queued", "expired"]
    assert rig.receipt("a").message == (
        "expired: no optimizer step within 30 s; nothing was changed"
    )
    rig.queue.run_at_boundary(1)
    assert rig.device.calls == []


def test_a_step_after_the_deadline_is_too_late_even_before_the_sampler_saw_it() -> None:
    rig = Rig()
    rig.submit("a", deadline_s=5)
    rig.clock.advance(5)
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "expired"]
    assert rig.device.calls == []


def test_one_that_expires_because_the_device_was_busy_says_so() -> None:
    rig = Rig()
    rig.device.reason = "a CUDA graph is being captured"
    rig.submit("a", deadline_s=2)
    rig.queue.run_at_boundary(1)
    rig.clock.advance(3)
    rig.queue.run_on_agent_thread(1)
    assert rig.receipt("a").message == (
        "expired: a CUDA graph is being captured at each optimizer step within 2 s; "
        "nothing was changed"
    )


def test_sent_twice_it_runs_once_and_is_answered_twice() -> None:
    rig = Rig()
    rig.submit("a")
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    rig.submit("a")
    rig.queue.run_at_boundary(2)
    assert rig.device.calls == ["empty_cache"]
    assert rig.outbox.states("a") == ["queued", "queued", "running", "done", "done"]
    assert rig.receipt("a").step == 1


def test_whoever_takes_a_command_first_is_the_only_one_to_run_it() -> None:
    rig = Rig()

    class Meeting(FakeDevice):
        def empty_cache(self) -> None:
            super().empty_cache()
            rig.queue.run_at_boundary(2)  # as another thread could at this moment

    rig.device = Meeting()
    rig.queue._handlers = CommandHandlers(rig.device)
    for identity in "abc":
        rig.submit(identity)
    rig.queue.run_at_boundary(1)
    assert rig.device.calls == ["empty_cache"] * 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({"name": "reboot"}, "no command named 'reboot'"),
        ({"name": "empty_cache", "params": {"x": 1}}, "parameters of empty_cache"),
        ({"name": "stats", "dry_run": True}, "stats has no dry run"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_touched(
    command: dict[str, Any], message: str
) -> None:
    rig = Rig()
    rig.submit("a", **command)
    assert rig.outbox.states("a") == ["refused"]
    assert message in rig.receipt("a").message


def test_an_agent_that_only_observes_refuses_what_changes_the_job() -> None:
    rig = Rig(allow="observe")
    for name in ("empty_cache", "gc_collect", "reset_peaks"):
        rig.submit(name, name)
        assert rig.outbox.states(name) == ["refused"]
        assert "VRAMSCOPE_ALLOW=control at its start permits" in rig.receipt(name).message
    rig.submit("s", "stats")
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("s")[-1] == "done"
    assert rig.queue.accepted() == ["memory_summary", "stats"]


def test_the_allow_list_has_the_last_word() -> None:
    rig = Rig(allow_commands=frozenset({"stats"}))
    rig.submit("a", "empty_cache")
    assert rig.receipt("a").message == "this agent's allow-list does not name empty_cache"
    assert rig.queue.accepted() == ["stats"]


def test_the_number_of_waiting_commands_is_bounded() -> None:
    rig = Rig()
    for number in range(MAX_WAITING + 1):
        rig.submit(str(number))
    assert rig.outbox.states(str(MAX_WAITING)) == ["refused"]
    assert rig.outbox.states("0") == ["queued"]


def test_an_error_of_the_device_is_the_commands_and_not_the_jobs() -> None:
    rig = Rig()
    rig.device.error = RuntimeError("CUDA error: out of luck\nlong explanation")
    rig.submit("a")
    rig.submit("b", "gc_collect")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "running", "failed"]
    assert rig.receipt("a").message == "RuntimeError: CUDA error: out of luck"
    assert rig.outbox.states("b")[-1] == "done"


def test_what_cannot_be_done_fails_with_its_own_words() -> None:
    rig = Rig()
    rig.device.stats = None
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    assert rig.receipt("a").message.startswith("the allocator has no counters yet")


def test_ctrl_c_in_the_middle_reaches_the_job_after_the_receipt() -> None:
    rig = Rig()
    rig.device.error = KeyboardInterrupt()
    rig.submit("a")
    with pytest.raises(KeyboardInterrupt):
        rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a")[-1] == "failed"
    assert "interrupted" in rig.receipt("a").message


def test_closing_ends_what_waits_and_refuses_what_comes() -> None:
    rig = Rig()
    rig.submit("a")
    rig.queue.close("the job has ended")
    rig.submit("b")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "failed"]
    assert rig.receipt("a").message == "the job has ended; nothing was changed"
    assert rig.outbox.states("b") == ["refused"]
    assert rig.device.calls == []


def test_a_dry_run_is_marked_as_one_in_the_receipt() -> None:
    rig = Rig()
    rig.submit("a", dry_run=True)
    rig.queue.run_at_boundary(1)
    assert rig.receipt("a").dry_run
    assert rig.device.calls == []


@pytest.mark.parametrize(
    ("deadline_s", "states"),
    [
        (float("nan"), ["queued", "expired"]),
        (-1.0, ["queued", "expired"]),
        (float("inf"), ["queued"]),
    ],
)
def test_a_deadline_that_is_no_time_is_over_or_a_day_away(
    deadline_s: float, states: list[str]
) -> None:
    rig = Rig()
    rig.submit("a", deadline_s=deadline_s)
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("a") == states


def test_a_refusal_does_not_quote_without_end() -> None:
    rig = Rig()
    rig.submit("a", params={"x" * 100_000: 1})
    assert len(rig.receipt("a").message) == 500


class Going:
    """A command that goes on until it is told to end."""

    progress = "on its way"

    def __init__(self) -> None:
        self.receipt: Receipt | None = None
        self.steps: list[int] = []
        self.cancelled = ""

    def poll(self, step: int) -> Receipt | None:
        self.steps.append(step)
        return self.receipt

    def poll_on_agent_thread(self) -> Receipt | None:
        return None

    def cancel(self, reason: str) -> Receipt:
        self.cancelled = reason
        return Receipt("failed", message=reason)


def going_rig() -> tuple[Rig, Going]:
    rig, going = Rig(), Going()
    rig.queue._handlers = CommandHandlers(rig.device, {"gc_collect": lambda _call: going})
    rig.submit("a", "gc_collect", deadline_s=5)
    rig.queue.run_at_boundary(1)
    return rig, going


def test_what_goes_on_stays_running_until_its_receipt() -> None:
    rig, going = going_rig()
    rig.queue.run_at_boundary(2)
    assert rig.outbox.states("a") == ["queued", "running"]
    going.receipt = Receipt("done")
    rig.queue.run_at_boundary(3)
    assert rig.outbox.states("a") == ["queued", "running", "done"]
    assert rig.receipt("a").step == 3
    assert going.steps == [2, 3]


def test_while_the_device_is_busy_what_goes_on_is_not_asked() -> None:
    rig, going = going_rig()
    rig.device.reason = "a CUDA graph is being captured"
    rig.queue.run_at_boundary(2)
    assert going.steps == []


def test_what_meets_no_boundary_any_more_is_ended_by_the_sampler() -> None:
    rig, going = going_rig()
    rig.clock.advance(5)
    rig.queue.run_on_agent_thread(1)
    assert going.cancelled == "no optimizer step within 5 s"
    assert rig.outbox.states("a")[-1] == "failed"


def test_closing_ends_what_goes_on() -> None:
    rig, going = going_rig()
    rig.queue.close("the job has ended")
    assert going.cancelled == "the job has ended"
    assert rig.outbox.states("a")[-1] == "failed"


def test_a_command_for_a_step_runs_there_once_it_is_decided() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.end_steps(1)
    rig.decide("a", 3, run=True)
    rig.end_steps(1)
    assert rig.device.calls == []
    rig.end_steps(3)
    assert rig.device.calls == ["empty_cache"]
    assert rig.outbox.states("a") == ["prepared", "running", "done"]
    assert [update.at_step for update in rig.outbox.updates("a")] == [3, None, None]
    assert rig.receipt("a").step == 3
    assert rig.samples == 1


def test_between_promise_and_decision_nothing_else_runs_at_a_step_end() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.submit("b", "gc_collect")
    rig.submit("s", "stats")
    rig.end_steps(2)
    rig.queue.run_on_agent_thread(2)
    assert rig.outbox.states("b") == ["queued"]
    assert rig.outbox.states("s")[-1] == "done"
    rig.decide("a", 3, run=False, reason="Rank 1 is lost.")
    rig.end_steps(1)
    assert rig.outbox.states("b")[-1] == "done"
    assert rig.device.calls == []


def test_what_had_to_wait_too_long_for_a_decision_says_so() -> None:
    rig = Rig()
    rig.submit("a", at_step=30)
    rig.submit("b", "gc_collect", deadline_s=2)
    rig.end_steps(1)
    rig.clock.advance(3)
    rig.end_steps(1)
    assert rig.receipt("b").message.startswith("expired: another command is being agreed on")


def test_the_deadline_of_what_is_prepared_does_not_count_on_one_rank_alone() -> None:
    rig = Rig()
    rig.submit("a", at_step=3, deadline_s=1)
    rig.clock.advance(100)
    rig.queue.run_on_agent_thread(0)
    rig.decide("a", 3, run=True)
    rig.end_steps(3)
    assert rig.outbox.states("a")[-1] == "done"


def test_sent_twice_for_a_step_it_is_answered_twice_and_runs_once() -> None:
    rig = Rig()
    rig.submit("a", at_step=2)
    rig.submit("a", at_step=2)
    rig.decide("a", 2, run=True)
    rig.decide("a", 2, run=True)
    rig.end_steps(2)
    rig.submit("a", at_step=2)
    rig.decide("a", 2, run=True)
    rig.end_steps(2)
    assert rig.device.calls == ["empty_cache"]
    assert rig.outbox.states("a") == ["prepared", "prepared", "running", "done", "done"]


def test_for_a_step_that_is_over_it_may_come_again_for_a_later_one() -> None:
    rig = Rig()
    rig.step = 5
    rig.submit("a", at_step=5)
    rig.submit("a", at_step=5)
    first, second = rig.outbox.updates("a")
    assert (first.state, first.at_step, second.at_step) == ("refused", 5, 5)
    assert not first.is_last_word
    rig.submit("a", at_step=7)
    rig.decide("a", 7, run=True)
    rig.end_steps(2)
    assert rig.outbox.states("a")[2:] == ["prepared", "running", "done"]


def test_dropped_to_come_again_it_is_prepared_anew() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=False, reason="again")
    rig.submit("a", at_step=4)
    rig.decide("a", 4, run=True)
    rig.end_steps(4)
    assert rig.outbox.states("a") == ["prepared", "prepared", "running", "done"]
    assert rig.receipt("a").step == 4


def test_dropped_for_good_it_does_not_come_again() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=False, reason="Rank 1 is lost.")
    rig.submit("a", at_step=9)
    assert rig.outbox.states("a") == ["prepared", "refused", "refused"]
    assert rig.receipt("a").message == "Rank 1 is lost. Nothing was changed."


def test_a_second_command_for_a_step_is_refused_while_one_is_prepared() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.submit("b", at_step=4)
    assert rig.outbox.states("b") == ["refused"]
    assert rig.outbox.updates("b")[0].is_last_word


def test_the_allow_list_counts_for_what_is_to_be_prepared() -> None:
    rig = Rig(allow="observe")
    rig.submit("a", at_step=3)
    assert rig.outbox.states("a") == ["refused"]
    rig.decide("a", 3, run=True)
    rig.end_steps(3)
    assert rig.device.calls == []


def test_what_runs_at_no_step_cannot_be_prepared_for_one() -> None:
    rig = Rig()
    # The second runs at step ends, but each rank has its own: no reason to stand still.
    for identity, name in (("a", "stats"), ("b", "gc_collect")):
        rig.submit(identity, name, at_step=3)
        assert rig.receipt(identity).message == (f"{name} is not run at the same step on all ranks")


def test_closing_ends_what_is_prepared() -> None:
    rig = Rig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=True)
    rig.queue.close("the job has ended")
    rig.end_steps(3)
    assert rig.outbox.states("a") == ["prepared", "refused"]
    assert rig.receipt("a").message == "The job has ended. Nothing was changed."


def test_what_will_run_is_announced_when_that_is_certain() -> None:
    rig = Rig()
    rig.submit("a", "gc_collect")
    assert rig.coming == ["gc_collect"]
    rig.submit("b", at_step=3)
    assert rig.coming == ["gc_collect"]
    rig.decide("b", 3, run=True)
    assert rig.coming == ["gc_collect", "empty_cache"]
    rig.decide("b", 3, run=True)
    assert rig.coming == ["gc_collect", "empty_cache"]


def test_what_goes_on_is_followed_until_the_step_that_another_one_waits_for() -> None:
    rig, going = going_rig()
    rig.step = 1
    rig.submit("b", at_step=3)
    rig.end_steps(1)
    assert going.steps == [2]
