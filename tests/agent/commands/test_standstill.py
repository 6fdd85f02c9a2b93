"""Training stands still until the word is known, as long as was said; Ctrl-C comes through."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.support.fake_store import FakeStore
from vramscope.commands.agreement import Agreement
from vramscope.commands.standstill import MAX_HOLD_S, Prepared, Standstill
from vramscope_protocol.messages import Command, Decision


def prepared(hold_s: float = 5.0) -> Prepared:
    return Prepared(Command("c1", "pause", at_step=7, hold_s=hold_s), None, 7)


def decision(*, run: bool, reason: str = "") -> Decision:
    return Decision("c1", 7, run=run, reason=reason)


def standstill(store: FakeStore | None = None) -> Standstill:
    return Standstill(Agreement(lambda: store, ask_s=0.2))


def test_what_is_decided_already_costs_no_waiting() -> None:
    store = FakeStore()
    command = prepared()
    command.decide(decision(run=True))
    outcome = standstill(store).wait(command, None)
    assert (outcome.word, outcome.is_expired) == ("run", False)
    assert outcome.stood_s < 0.5
    assert store.words == {"vramscope/c1/7": "run"}


def test_the_first_decision_counts() -> None:
    command = prepared()
    command.decide(decision(run=False, reason="Rank 1 is lost."))
    command.decide(decision(run=True))
    outcome = standstill().wait(command, None)
    assert (outcome.word, outcome.reason) == ("drop", "Rank 1 is lost.")


def test_a_decision_ends_it_at_once() -> None:
    command = prepared(hold_s=20)
    timer = threading.Timer(0.1, command.decide, [decision(run=True)])
    timer.start()
    outcome = standstill().wait(command, None)
    timer.join()
    assert outcome.word == "run"
    assert outcome.stood_s < 3


def test_a_rank_that_hears_nothing_does_what_the_others_do() -> None:
    store = FakeStore()
    command = prepared(hold_s=20)
    timer = threading.Timer(0.1, Agreement(lambda: store).settle, ["vramscope/c1/7", "run"])
    timer.start()
    outcome = standstill(store).wait(command, None)
    timer.join()
    assert outcome.word == "run"
    assert outcome.stood_s < 3


def test_without_any_word_it_is_dropped_for_all() -> None:
    store = FakeStore()
    outcome = standstill(store).wait(prepared(hold_s=0.1), None)
    assert (outcome.word, outcome.is_expired) == ("drop", True)
    assert outcome.reason == "No decision came within 0.1 s."
    late = prepared()
    late.decide(decision(run=True))
    outcome = standstill(store).wait(late, None)
    assert (outcome.word, outcome.reason) == ("drop", "Another rank has dropped it.")


def test_one_that_cannot_run_it_drops_it_for_all() -> None:
    store = FakeStore()
    outcome = standstill(store).wait(prepared(hold_s=20), "It is busy.")
    assert (outcome.word, outcome.reason) == ("drop", "It is busy.")
    assert store.words == {"vramscope/c1/7": "drop"}


@pytest.mark.parametrize("run", [True, False])
def test_where_the_store_fails_the_server_has_the_last_word(run: bool) -> None:
    store = FakeStore()
    store.error = RuntimeError("Broken pipe")
    command = prepared()
    command.decide(decision(run=run))
    assert standstill(store).wait(command, None).word == ("run" if run else "drop")


def test_where_it_hangs_the_decision_still_comes_through() -> None:
    store = FakeStore()
    store.hang()
    command = prepared(hold_s=20)
    timer = threading.Timer(0.4, command.decide, [decision(run=True)])
    timer.start()
    outcome = standstill(store).wait(command, None)
    timer.join()
    store.recover()
    assert outcome.word == "run"
    assert outcome.stood_s < 3


def test_an_agent_that_leaves_waits_for_nothing() -> None:
    store = FakeStore()
    command = prepared(hold_s=20)
    timer = threading.Timer(0.1, command.close, ["It leaves."])
    timer.start()
    outcome = standstill(store).wait(command, None)
    timer.join()
    assert (outcome.word, outcome.reason) == ("drop", "It leaves.")
    assert outcome.stood_s < 3
    assert store.words == {"vramscope/c1/7": "drop"}


@pytest.mark.parametrize(
    ("hold_s", "expected_s"),
    [(1e9, MAX_HOLD_S), (float("inf"), MAX_HOLD_S), (-1.0, 0.0), (float("nan"), 0.0)],
)
def test_nobody_can_have_a_job_stand_still_for_long(hold_s: float, expected_s: float) -> None:
    assert prepared(hold_s).hold_s == expected_s


def test_ctrl_c_comes_through() -> None:
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        standstill().wait(prepared(hold_s=20), None)
    timer.join()
    assert time.monotonic() - begun_s < 3
