from __future__ import annotations

import msgspec
import pytest

from tests.support.server_commands import S, answer, make_command
from vramscope_protocol.commands import CommandState
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.record import record_from_dict


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "queued"),
        (["done"], "queued"),
        (["prepared"], "prepared"),
        (["running", "prepared"], "running"),
        (["running", "failed"], "running"),
        (["done", "done"], "done"),
        (["done", "refused"], "refused"),
        (["expired", "refused"], "expired"),
        (["expired", "failed"], "failed"),
    ],
)
def test_state_of_the_whole(states: list[CommandState], expected: str) -> None:
    record = make_command([0, 1])
    for rank, state in enumerate(states):
        assert record.answer(rank, answer(state))
    assert record.state == expected


def test_a_command_is_finished_when_the_last_rank_has_answered() -> None:
    record = make_command([0, 1])
    record.answer(0, answer("done", 105))
    assert (record.finished_ns, record.open_ranks) == (None, [1])
    record.answer(1, answer("done", 107))
    assert (record.finished_ns, record.is_final) == (107 * S, True)


def test_a_final_answer_stands() -> None:
    record = make_command()
    record.answer(0, answer("done", returned_bytes=5))
    assert not record.answer(0, answer("failed"))
    assert not record.answer(0, answer("running"))
    assert record.state == "done"
    assert record.answers[0].receipt.returned_bytes == 5


def test_a_late_word_of_the_rank_beats_the_servers_guess() -> None:
    record = make_command()
    guess = answer("expired", 136)
    guess.by_server = True
    record.answer(0, guess)
    assert not record.answer(0, answer("running"))
    assert record.answer(0, answer("done", 140))
    assert (record.state, record.finished_ns) == ("done", 140 * S)
    assert record.answers[0].overrules
    assert not record.answer(0, guess)


def test_a_rank_that_was_not_asked_is_not_heard() -> None:
    record = make_command([0])
    assert not record.answer(1, answer("failed"))
    assert record.state == "queued"


def test_how_many_ranks_are_prepared_is_shown() -> None:
    assert make_command().as_dict()["agreement"] is None
    record = make_command([0, 1, 2, 3], agreement=Agreement(at_step=9))
    for rank, state in enumerate(("prepared", "running", "queued", "refused")):
        record.answer(rank, answer(state))  # type: ignore[arg-type]  # they are states
    assert record.as_dict()["agreement"] == {
        "at_step": 9,
        "decision": None,
        "reason": "",
        "decided_ns": None,
        "prepared": 2,
    }


def test_whose_own_last_word_is_still_to_come() -> None:
    record = make_command([0, 1, 2])
    guess = answer("refused")
    guess.by_server = True
    record.answer(0, guess)
    record.answer(1, answer("done"))
    assert [record.awaits_word_of(rank) for rank in (0, 1, 2, 7)] == [True, False, True, False]


def test_a_record_survives_the_way_through_the_store() -> None:
    record = make_command([0, 1], params={"x": 1}, dry_run=True, note="Each for itself.")
    record.agreement = Agreement(9, False, "Rank 1 refused.", 5)
    record.answer(
        0, answer("done", step=4, before={"reserved_bytes": 2}, returned_bytes=1, took_s=0.5)
    )
    stored = msgspec.json.decode(msgspec.json.encode(record.as_dict()))
    again = record_from_dict("r1", stored)
    assert again.as_dict() == record.as_dict()
    assert again.same_request(record)
    assert not again.same_request(make_command([0, 1], params={"x": 2}, dry_run=True))
    assert again.open_ranks == [1]
