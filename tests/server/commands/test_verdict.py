from __future__ import annotations

from tests.support.server_commands import S, answer, make_command
from vramscope_server.commands.verdict import give_up, give_up_ns, next_check_ns
from vramscope_server.settings import Limits

LIMITS = Limits(command_grace_s=5, command_run_s=60)


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
