from __future__ import annotations

from tests.support.server_commands import FakeCarrier, S, make_command
from vramscope_protocol.messages import Decision
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.messenger import Messenger
from vramscope_server.settings import Limits


def messenger(carrier: FakeCarrier, now_s: int = 110) -> Messenger:
    return Messenger(carrier, Limits(command_hold_s=7.0), lambda: now_s * S)


def test_a_command_carries_the_time_that_is_left_and_its_step() -> None:
    carrier = FakeCarrier(0, 1)
    record = make_command([0, 1, 2])
    messenger(carrier).send(record, 0)
    record.agreement = Agreement(at_step=42)
    messenger(carrier).send(record, 1)
    messenger(carrier).send(record, 2)
    messenger(carrier, now_s=130).send(record, 0)
    (_, alone), (_, together) = carrier.sent
    assert (alone.deadline_s, alone.at_step) == (20.0, None)
    assert (together.at_step, together.hold_s) == (42, 7.0)
    assert record.sent == {0, 1}


def test_a_decision_goes_to_those_that_got_the_command() -> None:
    carrier = FakeCarrier(0, 1, 2)
    record = make_command([0, 1, 2], agreement=Agreement(at_step=42))
    record.sent.update({0, 1})
    messenger(carrier).tell_decision(record, record.ranks)
    messenger(carrier).tell_decision(make_command(), [0])
    assert carrier.decisions == []
    record.agreement = Agreement(42, False, "Rank 2 has ended.")
    messenger(carrier).tell_decision(record, record.ranks)
    drop = Decision("c1", 42, run=False, reason="Rank 2 has ended.")
    assert carrier.decisions == [(0, drop), (1, drop)]


def test_a_step_is_taken_back_with_the_word_that_it_comes_again() -> None:
    carrier = FakeCarrier(1)
    messenger(carrier).take_back(make_command([0, 1]), 42)
    assert carrier.decisions == [(1, Decision("c1", 42, run=False, reason="again"))]
