"""A command for a certain step: prepared, decided, and run there once, or on no rank at all."""

from __future__ import annotations

from tests.support.queue_rig import QueueRig, going_rig


def test_a_command_for_a_step_runs_there_once_it_is_decided() -> None:
    rig = QueueRig()
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
    rig = QueueRig()
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
    rig = QueueRig()
    rig.submit("a", at_step=30)
    rig.submit("b", "gc_collect", deadline_s=2)
    rig.end_steps(1)
    rig.clock.advance(3)
    rig.end_steps(1)
    assert rig.receipt("b").message.startswith("expired: another command is being agreed on")


def test_the_deadline_of_what_is_prepared_does_not_count_on_one_rank_alone() -> None:
    rig = QueueRig()
    rig.submit("a", at_step=3, deadline_s=1)
    rig.clock.advance(100)
    rig.queue.run_on_agent_thread(0)
    rig.decide("a", 3, run=True)
    rig.end_steps(3)
    assert rig.outbox.states("a")[-1] == "done"


def test_sent_twice_for_a_step_it_is_answered_twice_and_runs_once() -> None:
    rig = QueueRig()
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
    rig = QueueRig()
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
    rig = QueueRig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=False, reason="again")
    rig.submit("a", at_step=4)
    rig.decide("a", 4, run=True)
    rig.end_steps(4)
    assert rig.outbox.states("a") == ["prepared", "prepared", "running", "done"]
    assert rig.receipt("a").step == 4


def test_dropped_for_good_it_does_not_come_again() -> None:
    rig = QueueRig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=False, reason="Rank 1 is lost.")
    rig.submit("a", at_step=9)
    assert rig.outbox.states("a") == ["prepared", "refused", "refused"]
    assert rig.receipt("a").message == "Rank 1 is lost. Nothing was changed."


def test_a_second_command_for_a_step_is_refused_while_one_is_prepared() -> None:
    rig = QueueRig()
    rig.submit("a", at_step=3)
    rig.submit("b", at_step=4)
    assert rig.outbox.states("b") == ["refused"]
    assert rig.outbox.updates("b")[0].is_last_word


def test_the_allow_list_counts_for_what_is_to_be_prepared() -> None:
    rig = QueueRig(allow="observe")
    rig.submit("a", at_step=3)
    assert rig.outbox.states("a") == ["refused"]
    rig.decide("a", 3, run=True)
    rig.end_steps(3)
    assert rig.device.calls == []


def test_what_runs_at_no_step_cannot_be_prepared_for_one() -> None:
    rig = QueueRig()
    # The second runs at step ends, but each rank has its own: no reason to stand still.
    for identity, name in (("a", "stats"), ("b", "gc_collect")):
        rig.submit(identity, name, at_step=3)
        assert rig.receipt(identity).message == (f"{name} is not run at the same step on all ranks")


def test_closing_ends_what_is_prepared() -> None:
    rig = QueueRig()
    rig.submit("a", at_step=3)
    rig.decide("a", 3, run=True)
    rig.queue.close("the job has ended")
    rig.end_steps(3)
    assert rig.outbox.states("a") == ["prepared", "refused"]
    assert (
        rig.receipt("a").message
        == "The job has ended before the command could run. Nothing was changed."
    )


def test_what_will_run_is_announced_when_that_is_certain() -> None:
    rig = QueueRig()
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
