"""The advice as plain data: what a page needs, and nothing that is not known."""

from __future__ import annotations

from tests.support.made_batches import LIMIT, batch_rank, planned
from vramscope_analysis.batch.batch_advice import BatchAdvice, batch_advice
from vramscope_analysis.batch.run_advice import RunAdvice
from vramscope_server.batch.batch_payload import batch_payload


def advised(*sizes: tuple[int, int], passes: int = 1) -> RunAdvice:
    found = batch_advice(batch_rank(planned(*sizes), columns={"step.batch_count": passes}))
    assert isinstance(found, BatchAdvice)
    return RunAdvice((found,), {1: "no_batch"}, 2)


def test_each_rank_has_its_numbers_and_silent_ones_their_reason() -> None:
    found = batch_payload(advised((4, 9)), 0.05)
    (rank,) = found["advice"]["ranks"]
    assert rank["limit_bytes"] == LIMIT
    assert rank["tried"][0]["batch_size"] == 4
    assert rank["waste_bytes"] > 0
    assert found["advice"]["silent_ranks"] == [
        {
            "rank": 1,
            "reason": "no_batch",
            "text": found["advice"]["silent_ranks"][0]["text"],
        }
    ]
    assert found["probe"]["params"] == {
        "batch_size": 8,
        "accumulation": 1,
        "change_global_batch": True,
    }


def test_a_size_that_keeps_the_global_batch_is_offered_beside_it() -> None:
    advice = batch_payload(advised((4, 9), passes=6), 0.05)["advice"]
    assert advice["keeping"] == {"batch_size": 24, "accumulation": 1}
    assert advice["accumulation"] == 6


def test_silence_is_a_reason_and_a_sentence() -> None:
    found = batch_payload("no_limit", 0.05)
    assert found["advice"] is None
    assert found["silent"] == {
        "reason": "no_limit",
        "text": "It is not known how much memory the job may have.",
    }
