from __future__ import annotations

from tests.support.server_commands import S, answer, make_command
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.verdict import (
    answer_dropped,
    answer_gone,
    give_up,
    give_up_ns,
    next_check_ns,
)
from vramscope_server.settings import Limits

LIMITS = Limits(command_grace_s=5, command_run_s=60, command_prepare_s=10, command_hold_s=20)


def test_each_rank_has_its_own_patience() -> None:
    record = make_command([0, 1, 2])
    record.sent.update({1, 2})
    record.answer(2, answer("running"))
    assert [give_up_ns(record, rank, LIMITS) // S for rank in record.ranks] == [130, 135, 190]
    assert next_check_ns(record, LIMITS) == 130 * S


def test_a_rank_that_was_never_reached_expires_at_the_deadline() -> None:
    record = make_command([3])
    assert not give_up(record, 130 * S - 1, LIMITS)
    assert give_up(record, 130 * S, LIMITS)
    assert record.state == "expired"
    message = record.answers[3].receipt.message
    assert message == "Rank 3 was not connected within 30 s. Nothing was changed."
    assert next_check_ns(record, LIMITS) is None


def test_a_rank_that_got_it_may_answer_a_little_later() -> None:
    record = make_command()
    record.sent.add(0)
    assert not give_up(record, 134 * S, LIMITS)
    assert give_up(record, 135 * S, LIMITS)
    assert record.state == "expired"
    assert "It is not known whether the command ran." in record.answers[0].receipt.message


def test_a_rank_that_began_and_fell_silent_has_failed() -> None:
    record = make_command()
    record.answer(0, answer("running"))
    assert not give_up(record, 189 * S, LIMITS)
    assert give_up(record, 190 * S, LIMITS)
    assert record.state == "failed"


def test_a_restarted_server_gives_the_ranks_time_to_come_back() -> None:
    record = make_command()
    record.not_before_ns = 500 * S
    assert not give_up(record, 499 * S, LIMITS)
    assert give_up(record, 500 * S, LIMITS)


def test_a_rank_that_goes_on_is_waited_for_from_its_last_word() -> None:
    record = make_command()
    first = answer("running")
    first.received_ns = 105 * S
    record.answer(0, first)
    assert give_up_ns(record, 0, LIMITS) // S == 105 + 30 + 60
    later = answer("running")
    later.received_ns = 500 * S
    record.answer(0, later)
    assert not give_up(record, 589 * S, LIMITS)
    assert give_up(record, 590 * S, LIMITS)


def agreed(run: bool | None, reason: str = "") -> CommandRecord:
    """Decided at second 102, if it is."""
    agreement = Agreement(9, run, reason, None if run is None else 102 * S)
    record = make_command([0, 1, 2], agreement=agreement)
    record.sent.update({0, 1})
    return record


def test_what_is_decided_is_waited_for_until_the_ranks_are_at_the_step() -> None:
    record = agreed(run=True)
    assert give_up_ns(record, 0, LIMITS) // S == 102 + 60 + 5
    record.due_ns = 142 * S
    assert give_up_ns(record, 0, LIMITS) // S == 102 + 2 * 40 + 60 + 5
    record.deadline_ns = 500 * S
    assert give_up_ns(record, 0, LIMITS) // S == 500 + 5
    assert give_up(record, 505 * S, LIMITS)
    assert record.state == "expired"
    assert "It is not known whether" in record.answers[0].receipt.message


def test_after_a_drop_the_ranks_have_a_moment_to_say_so_themselves() -> None:
    record = agreed(run=False, reason="Rank 1 refused: no.")
    assert give_up_ns(record, 0, LIMITS) // S == 102 + 5
    assert give_up(record, 107 * S, LIMITS)
    assert record.state == "refused"
    assert record.answers[0].receipt.message == "Rank 1 refused: no. Nothing was changed."


def test_while_nothing_is_decided_that_is_left_to_whoever_decides() -> None:
    record = agreed(run=None)
    assert not give_up(record, 164 * S, LIMITS)
    assert give_up(record, 165 * S, LIMITS)


def test_a_drop_is_answered_for_ranks_that_will_not_hear_of_it() -> None:
    record = agreed(run=False, reason="Rank 1 did not get ready in time.")
    answer_dropped(record, {1}, 103 * S)
    assert {rank: each.state for rank, each in record.answers.items()} == {
        1: "expired",
        2: "refused",
    }
    assert record.open_ranks == [0]
    assert record.answer(1, answer("refused", 104)), "its own word is better"


def test_of_a_rank_that_is_gone_only_what_is_known_is_said() -> None:
    assert not answer_gone(make_command(), 0, "has ended", 103 * S)
    record = agreed(run=True)
    assert answer_gone(record, 0, "has ended", 103 * S)
    assert not answer_gone(record, 0, "has ended", 103 * S)
    assert record.answers[0].state == "failed"
    assert record.answers[0].receipt.message == (
        "Rank 0 has ended, and has not answered. It is not known whether the command ran."
    )
    record = agreed(run=False, reason="Rank 1 is lost.")
    assert answer_gone(record, 0, "has ended", 103 * S)
    assert record.answers[0].state == "refused"
    assert record.answers[0].receipt.message == "Rank 1 is lost. Nothing was changed."
