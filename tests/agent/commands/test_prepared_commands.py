"""A command prepared for a step: promised, decided, met at its step, dropped, prepared again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.fake_store import FakeStore
from vramscope.commands.agreement import Agreement
from vramscope.commands.prepared_commands import PreparedCommands
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import Command, Decision

Told = tuple[str, CommandState, int | None]


class Rank:
    """One rank with its step; all ranks of a test share the store."""

    def __init__(self, store: FakeStore | None = None, step: int = 5) -> None:
        self.store = store or FakeStore()
        self.step = step
        self.told: list[Told] = []
        self.receipts: list[Receipt] = []
        self.forgotten: list[tuple[str, int]] = []
        self.commands = PreparedCommands(
            Agreement(lambda: self.store, ask_s=0.2),
            step=lambda: self.step,
            tell=self._tell,
            forget=lambda identity, at_step: self.forgotten.append((identity, at_step)),
        )

    def _tell(
        self, identity: str, state: CommandState, receipt: Receipt | None, at_step: int | None
    ) -> None:
        self.told.append((identity, state, at_step))
        if receipt is not None:
            self.receipts.append(receipt)

    def prepare(self, at_step: int, identity: str = "c1", hold_s: float = 5.0) -> None:
        command = Command(identity, "empty_cache", at_step=at_step, hold_s=hold_s)
        self.commands.prepare(command, None, at_step)

    def decide(self, at_step: int, *, run: bool, reason: str = "") -> Command | None:
        return self.commands.decide(Decision("c1", at_step, run=run, reason=reason))

    def end_step(self, busy_reason: str | None = None) -> bool:
        """Count a step; whether the command runs at its end."""
        self.step += 1
        return self.commands.meet(self.step, busy_reason) is not None


def test_it_runs_at_the_end_of_its_step_and_at_no_other() -> None:
    rank = Rank(step=5)
    rank.prepare(8)
    assert rank.told == [("c1", "prepared", 8)]
    command = rank.decide(8, run=True)
    assert command is not None
    assert command.id == "c1"
    assert [rank.end_step() for _ in range(4)] == [False, False, True, False]
    assert rank.step == 9
    assert len(rank.commands) == 0


@pytest.mark.parametrize("step", [8, 9, 100])
def test_a_step_that_is_over_is_said_and_is_no_last_word(step: int) -> None:
    rank = Rank(step=step)
    rank.prepare(8)
    assert rank.told == [("c1", "refused", 8)]
    assert rank.receipts[0].step == step
    assert rank.receipts[0].message == "step 8 is over"
    rank.prepare(step + 2)
    assert rank.told[-1] == ("c1", "prepared", step + 2)


def test_the_step_is_read_after_the_command_is_in() -> None:
    rank = Rank()
    # As if the training thread ended the step at the moment when the command is put in.
    rank.commands._step = lambda: 8 if len(rank.commands) else 7
    rank.prepare(8)
    assert rank.told == [("c1", "refused", 8)]
    assert len(rank.commands) == 0


def test_a_step_that_is_over_is_said_even_while_there_is_another_command() -> None:
    rank = Rank()
    rank.prepare(8)
    rank.prepare(5, "c2")
    assert rank.told[-1] == ("c2", "refused", 5)
    assert rank.receipts[-1].step == 5


def test_a_second_one_is_refused_while_there_is_a_first() -> None:
    rank = Rank()
    rank.prepare(8)
    with pytest.raises(VramscopeError, match="another command is being agreed on"):
        rank.prepare(9, "c2")
    rank.decide(8, run=False, reason="No.")
    rank.prepare(9, "c2")
    assert rank.told[-1] == ("c2", "prepared", 9)


def test_a_drop_says_why_and_that_nothing_was_changed() -> None:
    rank = Rank()
    rank.prepare(8)
    assert rank.decide(8, run=False, reason="Rank 2 is lost.") is None
    assert rank.told[-1] == ("c1", "refused", None)
    assert rank.receipts[-1].message == "Rank 2 is lost. Nothing was changed."
    assert not any(rank.end_step() for _ in range(5))


def test_a_drop_is_told_to_ranks_that_the_server_does_not_reach() -> None:
    rank = Rank()
    cut = Rank(rank.store)
    rank.prepare(6)
    cut.prepare(6, hold_s=20)
    rank.decide(6, run=False, reason="Rank 2 is lost.")
    assert not cut.end_step()
    assert cut.told[-1] == ("c1", "refused", None)
    assert cut.receipts[-1].message == "Another rank has dropped it. Nothing was changed."


def test_dropped_to_come_again_it_has_no_last_word() -> None:
    rank = Rank()
    rank.prepare(8)
    rank.decide(8, run=False, reason="again")
    assert rank.told == [("c1", "prepared", 8)]
    assert rank.forgotten == [("c1", 8)]
    rank.prepare(12)
    assert rank.told[-1] == ("c1", "prepared", 12)


def test_a_later_attempt_stands_for_the_drop_of_the_one_before() -> None:
    rank = Rank()
    rank.prepare(6)
    rank.prepare(9)
    assert rank.told == [("c1", "prepared", 6), ("c1", "prepared", 9)]
    rank.decide(9, run=True)
    assert [rank.end_step() for _ in range(4)] == [False, False, False, True]


def test_a_drop_counts_for_earlier_attempts_and_a_run_does_not() -> None:
    rank = Rank()
    rank.prepare(8)
    assert rank.decide(9, run=True) is None
    rank.decide(9, run=False, reason="Too late.")
    assert rank.told[-1] == ("c1", "refused", None)


def test_what_is_not_known_is_not_decided() -> None:
    rank = Rank()
    assert rank.decide(8, run=True) is None
    rank.prepare(8)
    rank.decide(8, run=True)
    assert rank.decide(8, run=True) is None
    rank.decide(8, run=False, reason="Changed its mind.")
    assert [rank.end_step() for _ in range(3)] == [False, False, True]
    assert rank.decide(8, run=True) is None


def test_undecided_it_is_dropped_at_its_step_on_all_ranks() -> None:
    slow = Rank()
    fast = Rank(slow.store)
    slow.prepare(6)
    fast.prepare(6, hold_s=0.1)
    assert not fast.end_step()
    assert fast.told[-1] == ("c1", "expired", None)
    slow.decide(6, run=True)
    assert not slow.end_step()
    assert slow.told[-1] == ("c1", "refused", None)


def test_a_rank_that_is_busy_drops_it_for_all() -> None:
    busy = Rank()
    other = Rank(busy.store)
    for rank in (busy, other):
        rank.prepare(6)
        rank.decide(6, run=True)
    assert not busy.end_step("a CUDA graph is being captured")
    assert not other.end_step()
    assert busy.receipts[-1].message == (
        "At the end of step 6, a CUDA graph is being captured. Nothing was changed."
    )


def test_a_rank_that_is_busy_when_others_have_run_it_has_failed() -> None:
    busy = Rank()
    other = Rank(busy.store)
    for rank in (other, busy):
        rank.prepare(6)
        rank.decide(6, run=True)
    assert other.end_step()
    assert not busy.end_step("a CUDA graph is being captured")
    assert busy.told[-1] == ("c1", "failed", None)
    assert busy.receipts[-1].message.endswith("The other ranks have run it.")


def test_a_step_that_went_by_unseen_is_no_place_to_run() -> None:
    rank = Rank()
    rank.prepare(7)
    rank.decide(7, run=True)
    rank.step = 8
    assert not rank.end_step()
    assert rank.receipts[-1].message.startswith("Step 7 ended where no command can run.")


def test_a_drop_that_comes_while_training_stands_still_lets_it_go_on() -> None:
    rank = Rank()
    rank.prepare(6, hold_s=20)
    timer = threading.Timer(0.1, lambda: rank.decide(6, run=False, reason="Rank 2 is lost."))
    timer.start()
    assert not rank.end_step()
    timer.join()
    assert rank.told == [("c1", "prepared", 6), ("c1", "refused", None)]
    assert rank.receipts[-1].message.startswith("Rank 2 is lost. Nothing was changed.")


def test_closing_drops_what_is_prepared_on_all_ranks() -> None:
    leaving = Rank()
    other = Rank(leaving.store)
    for rank in (leaving, other):
        rank.prepare(6)
        rank.decide(6, run=True)
    leaving.commands.close("the process ended")
    assert leaving.receipts[-1].message == "The process ended. Nothing was changed."
    assert not other.end_step()
    assert not leaving.end_step()


def test_closing_lets_training_that_stands_still_go_on() -> None:
    rank = Rank()
    rank.prepare(6, hold_s=20)
    timer = threading.Timer(0.1, rank.commands.close, ["the process ended"])
    timer.start()
    assert not rank.end_step()
    timer.join()
    assert rank.receipts[-1].message.startswith("The process ended. Nothing was changed.")


def test_what_is_prepared_after_the_end_is_dropped_at_once() -> None:
    rank = Rank()
    rank.commands.close("the process ended")
    rank.prepare(8)
    assert [state for _, state, _ in rank.told] == ["prepared", "refused"]


def test_ctrl_c_goes_on_to_the_job_after_the_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = Rank()
    rank.prepare(6)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rank.commands._standstill, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rank.end_step()
    assert rank.told[-1] == ("c1", "failed", None)
    assert Agreement(lambda: rank.store).settle("vramscope/c1/6", "run") == "drop"
    assert not rank.end_step()
