from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.server_commands import update
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.commands.agreement_round import AgreementRound, Verdict


def prepared(at_step: int | None = 9) -> CommandUpdate:
    return CommandUpdate(1, "c1", "prepared", 0, at_step=at_step)


def over(reached: int | None = 12, at_step: int = 9) -> CommandUpdate:
    return CommandUpdate(1, "c1", "refused", 0, Receipt("refused", step=reached), at_step=at_step)


def test_it_is_run_when_the_last_rank_is_ready() -> None:
    round_ = AgreementRound(9, [0, 1], until_ns=100)
    round_.take(0, prepared())
    round_.take(0, prepared())  # sent again after a reconnect
    assert round_.verdict(50) is None
    round_.take(1, prepared())
    assert round_.verdict(500) == Verdict("run")


def test_words_on_another_step_and_of_other_ranks_do_not_count() -> None:
    round_ = AgreementRound(9, [0, 1], until_ns=100)
    round_.take(0, prepared())
    round_.take(1, prepared(at_step=6))  # late: of the attempt before
    round_.take(1, prepared(at_step=None))
    round_.take(1, over(at_step=6))
    round_.take(7, prepared())
    round_.take(7, update("c1", "refused", message="no"))
    round_.take(1, update("c1", "queued"))
    assert round_.verdict(50) is None


def test_a_step_that_is_over_is_tried_again_at_once() -> None:
    round_ = AgreementRound(9, [0, 1, 2], until_ns=100)
    round_.take(0, prepared())
    round_.take(1, over(reached=14))
    round_.take(2, over(reached=None))
    verdict = round_.verdict(50)
    assert verdict is not None
    assert verdict.what == "again"
    assert round_.over == {1: 14, 2: 9}


def test_any_other_no_ends_it_and_the_first_is_the_reason() -> None:
    round_ = AgreementRound(9, [0, 1], until_ns=100)
    round_.take(0, over())
    round_.take(1, update("c1", "refused", message="the sampler is fixed"))
    round_.take(0, update("c1", "failed"))
    verdict = round_.verdict(50)
    assert verdict == Verdict("drop", "Rank 1 refused: the sampler is fixed.")


def test_ranks_that_say_nothing_are_named() -> None:
    round_ = AgreementRound(9, [0, 1, 2], until_ns=100)
    round_.take(1, prepared())
    assert round_.verdict(99) is None
    assert round_.verdict(100) == Verdict(
        "drop", "Ranks 0 and 2 did not get ready in time.", (0, 2)
    )


WORDS = st.sampled_from(["ready", "late ready", "over", "refused", "nothing"])


@given(st.lists(st.tuples(st.integers(0, 3), WORDS), max_size=30))
def test_it_is_run_only_if_every_rank_is_ready_and_none_objects(
    words: list[tuple[int, str]],
) -> None:
    round_ = AgreementRound(9, range(4), until_ns=100)
    for rank, word in words:
        if word == "ready":
            round_.take(rank, prepared())
        elif word == "late ready":
            round_.take(rank, prepared(at_step=5))
        elif word == "over":
            round_.take(rank, over())
        elif word == "refused":
            round_.take(rank, update("c1", "refused"))
    said = {word for _rank, word in words}
    ready = {rank for rank, word in words if word == "ready"}
    verdict = round_.verdict(100)
    assert verdict is not None
    assert (verdict.what == "run") == (len(ready) == 4 and not said & {"over", "refused"})
    assert (verdict.what == "again") == ("over" in said and "refused" not in said)
