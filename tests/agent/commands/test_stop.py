"""Who ends training: a framework, a loop that asks, or an exception that is like Ctrl-C."""

from __future__ import annotations

import pytest

import vramscope
from vramscope.commands.call import Call
from vramscope.commands.stop import SILENT_STEPS, Stop
from vramscope_protocol.commands import Receipt


def run(stop: Stop, step: int = 7) -> Receipt:
    receipt = stop.handlers()["stop"](Call(step=step))
    assert isinstance(receipt, Receipt)
    assert receipt.state == "done"
    return receipt


def test_where_nobody_else_ends_it_an_exception_does_once() -> None:
    stop = Stop(lambda: 6)
    stop.raise_if_due()
    receipt = run(stop)
    assert receipt.message == "vramscope.Stopped was raised after step 7, as Ctrl-C would be."
    with pytest.raises(KeyboardInterrupt) as raised:
        stop.raise_if_due()
    assert type(raised.value) is vramscope.Stopped
    assert str(raised.value) == "a person has stopped training after step 7"
    stop.raise_if_due()


def test_a_loop_that_asks_ends_by_itself() -> None:
    stop = Stop(lambda: 6)
    assert not stop.ask()
    assert "vramscope.should_stop()" in run(stop).message
    stop.raise_if_due()
    assert stop.ask()
    assert stop.ask()


def test_a_framework_ends_by_itself() -> None:
    stop = Stop(lambda: 6)
    stop.framework_begins("The Trainer of X")
    assert not stop.is_wanted
    assert run(stop).message == "The Trainer of X was told to end training after step 7."
    stop.raise_if_due()
    assert stop.framework_asks()


def test_a_framework_on_the_stack_ends_by_its_flag_and_nothing_is_raised() -> None:
    stop = Stop(lambda: 6, lambda: "The Trainer of X")
    assert run(stop).message == (
        "The Trainer of X was told to end training after step 7, by its own flag."
    )
    stop.raise_if_due()
    assert stop.is_wanted


def test_a_loop_that_asks_knows_better_than_the_stack() -> None:
    def raise_flag() -> str:
        raise AssertionError("it was asked for no flag")

    stop = Stop(lambda: 6, raise_flag)
    stop.ask()
    assert "vramscope.should_stop()" in run(stop).message


def test_a_framework_that_failed_without_a_word_is_not_relied_on() -> None:
    step = 0
    stop = Stop(lambda: step)
    stop.framework_begins("The Trainer of X")
    step = 100
    stop.framework_asks()
    step = 100 + SILENT_STEPS
    assert "The Trainer of X" in run(stop, step).message
    step += 1
    run(stop, step)
    with pytest.raises(vramscope.Stopped):
        stop.raise_if_due()


def test_a_training_that_begins_later_is_another_one() -> None:
    stop = Stop(lambda: 6)
    stop.framework_begins("The Trainer of X")
    run(stop)
    stop.framework_ends()
    stop.framework_begins("The Trainer of X")
    assert not stop.is_wanted


def test_after_the_framework_the_loop_is_on_its_own_again() -> None:
    stop = Stop(lambda: 6)
    stop.framework_begins("The Trainer of X")
    stop.framework_ends()
    run(stop)
    with pytest.raises(vramscope.Stopped):
        stop.raise_if_due()
