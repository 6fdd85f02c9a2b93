from __future__ import annotations

from tests.support.server_commands import answer, make_command
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.turns import Turns, is_under_way


def same_step(command_id: str, run_id: str = "r1", run: bool | None = None) -> CommandRecord:
    return make_command([0, 1], id=command_id, run_id=run_id, agreement=Agreement(9, run))


def test_commands_of_a_run_come_one_after_the_other_and_of_two_runs_at_once() -> None:
    turns = Turns()
    first, second = turns.add(same_step("c1")), turns.add(same_step("c2"))
    elsewhere = turns.add(same_step("c3", run_id="r2"))
    assert turns.before(first) is None
    assert turns.before(second) is first.record
    assert turns.before(elsewhere) is None
    turns.settled(first.record)
    assert turns.before(second) is first.record, "nothing is decided"
    first.record.agreement = Agreement(9, run=False)
    turns.settled(first.record)
    assert turns.before(second) is None
    assert second.wake.is_set()
    assert not elsewhere.wake.is_set()
    assert [turn.record.id for turn in turns] == ["c2", "c3"]


def test_one_is_under_way_until_all_ranks_have_begun() -> None:
    assert not is_under_way(make_command())
    assert is_under_way(same_step("c1"))
    assert not is_under_way(same_step("c1", run=False))
    record = same_step("c1", run=True)
    assert is_under_way(record)
    record.answer(0, answer("running"))  # a pause: a stop may be prepared meanwhile
    record.answer(1, answer("prepared"))
    assert is_under_way(record)
    record.answer(1, answer("done"))
    assert not is_under_way(record)


def test_the_first_objection_stands_and_wakes() -> None:
    turns = Turns()
    turn = turns.add(same_step("c1"))
    turns.object(turn.record, "Rank 1 has ended.")
    turns.object(turn.record, "Rank 0 has ended.")
    turns.object(same_step("c9"), "unknown")
    assert turn.obstacle == "Rank 1 has ended."
    assert turn.wake.is_set()
