"""A command runs once, in its place, before its deadline, and its fate is always told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.queue_rig import QueueRig, going_rig
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import MAX_WAITING
from vramscope_protocol.commands import Receipt


def test_a_changing_command_waits_for_the_end_of_a_step() -> None:
    rig = QueueRig()
    rig.submit("a")
    rig.queue.run_on_agent_thread(6)
    assert rig.device.calls == []
    rig.queue.run_at_boundary(7)
    assert rig.outbox.states("a") == ["queued", "running", "done"]
    assert rig.receipt("a").step == 7
    rig.queue.run_at_boundary(8)
    assert rig.device.calls == ["empty_cache"]
    assert rig.samples == 1


def test_a_dry_run_says_that_it_was_one_and_asks_for_no_sample() -> None:
    rig = QueueRig()
    rig.submit("a", dry_run=True)
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a")[-1] == "done"
    assert rig.receipt("a").dry_run
    assert (rig.device.calls, rig.samples) == ([], 0)


def test_a_reading_command_does_not_wait() -> None:
    rig = QueueRig()
    rig.submit("a", "memory_summary")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued"]
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("a") == ["queued", "running", "done"]


def test_while_the_device_is_busy_it_waits_for_the_next_step() -> None:
    rig = QueueRig()
    rig.device.reason = "a CUDA graph is being captured"
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued"]
    rig.device.reason = None
    rig.queue.run_at_boundary(2)
    assert rig.receipt("a").step == 2


def test_without_a_step_it_expires_and_says_that_nothing_was_changed() -> None:
    rig = QueueRig()
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
    rig = QueueRig()
    rig.submit("a", deadline_s=5)
    rig.clock.advance(5)
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "expired"]
    assert rig.device.calls == []


def test_one_that_expires_because_the_device_was_busy_says_so() -> None:
    rig = QueueRig()
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
    rig = QueueRig()
    rig.submit("a")
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    rig.submit("a")
    rig.queue.run_at_boundary(2)
    assert rig.device.calls == ["empty_cache"]
    assert rig.outbox.states("a") == ["queued", "queued", "running", "done", "done"]
    assert rig.receipt("a").step == 1


def test_what_is_asked_again_and_again_is_remembered_the_longest() -> None:
    rig = QueueRig()
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    for index in range(3000):
        rig.submit(f"other{index}", name="reboot")
        if index % 500 == 0:
            rig.submit("a")
    rig.queue.run_at_boundary(2)
    assert rig.device.calls == ["empty_cache"]


def test_whoever_takes_a_command_first_is_the_only_one_to_run_it() -> None:
    rig = QueueRig()

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
    rig = QueueRig()
    rig.submit("a", **command)
    assert rig.outbox.states("a") == ["refused"]
    assert message in rig.receipt("a").message


def test_an_agent_that_only_observes_refuses_what_changes_the_job() -> None:
    rig = QueueRig(allow="observe")
    for name in ("empty_cache", "gc_collect", "reset_peaks"):
        rig.submit(name, name)
        assert rig.outbox.states(name) == ["refused"]
        assert "VRAMSCOPE_ALLOW=control at its start permits" in rig.receipt(name).message
    rig.submit("s", "stats")
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("s")[-1] == "done"
    assert rig.queue.accepted() == ["memory_summary", "stats"]


def test_the_allow_list_has_the_last_word() -> None:
    rig = QueueRig(allow_commands=frozenset({"stats"}))
    rig.submit("a", "empty_cache")
    assert rig.receipt("a").message == "this agent's allow-list does not name empty_cache"
    assert rig.queue.accepted() == ["stats"]


def test_the_number_of_waiting_commands_is_bounded() -> None:
    rig = QueueRig()
    for number in range(MAX_WAITING + 1):
        rig.submit(str(number))
    assert rig.outbox.states(str(MAX_WAITING)) == ["refused"]
    assert rig.outbox.states("0") == ["queued"]


def test_an_error_of_the_device_is_the_commands_and_not_the_jobs() -> None:
    rig = QueueRig()
    rig.device.error = RuntimeError("CUDA error: out of luck\nlong explanation")
    rig.submit("a")
    rig.submit("b", "gc_collect")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "running", "failed"]
    assert rig.receipt("a").message == "RuntimeError: CUDA error: out of luck"
    assert rig.outbox.states("b")[-1] == "done"


def test_what_cannot_be_done_fails_with_its_own_words() -> None:
    rig = QueueRig()
    rig.device.stats = None
    rig.submit("a")
    rig.queue.run_at_boundary(1)
    assert rig.receipt("a").message.startswith("the allocator has no counters yet")


def test_ctrl_c_in_the_middle_reaches_the_job_after_the_receipt() -> None:
    rig = QueueRig()
    rig.device.error = KeyboardInterrupt()
    rig.submit("a")
    with pytest.raises(KeyboardInterrupt):
        rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a")[-1] == "failed"
    assert "interrupted" in rig.receipt("a").message


def test_closing_ends_what_waits_and_refuses_what_comes() -> None:
    rig = QueueRig()
    rig.submit("a")
    rig.queue.close("the job has ended")
    rig.submit("b")
    rig.queue.run_at_boundary(1)
    assert rig.outbox.states("a") == ["queued", "failed"]
    assert (
        rig.receipt("a").message
        == "the job has ended before the command could run; nothing was changed"
    )
    assert rig.outbox.states("b") == ["refused"]
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
    rig = QueueRig()
    rig.submit("a", deadline_s=deadline_s)
    rig.queue.run_on_agent_thread(1)
    assert rig.outbox.states("a") == states


def test_a_refusal_does_not_quote_without_end() -> None:
    rig = QueueRig()
    rig.submit("a", params={"x" * 100_000: 1})
    assert len(rig.receipt("a").message) == 500


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
