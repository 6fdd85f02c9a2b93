"""What a person reads of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from tests.support.made_batches import FIXED, SAMPLE, batch_rank, planned
from vramscope_analysis.batch.advice_words import SILENCES, advice_sentence, basis, open_question
from vramscope_analysis.batch.batch_advice import BatchAdvice, Silence, batch_advice
from vramscope_analysis.batch.batch_steps import Reason
from vramscope_analysis.batch.run_advice import RunAdvice


def advice(sizes: list[int], **columns: Any) -> BatchAdvice:
    found = batch_advice(batch_rank(sizes, columns=columns))
    assert isinstance(found, BatchAdvice)
    return found


def run(*ranks: BatchAdvice, **more: Any) -> RunAdvice:
    return RunAdvice(ranks, world_size=len(ranks), **more)


def test_the_sentence_has_the_number_and_its_range() -> None:
    one = replace(advice([8] * 20), batch=48, low=46, high=50)
    said = advice_sentence(run(one), 0.05)
    assert said == "Largest batch that fits with 5\u2009% head-room: 48 (range 46 to 50)."
    assert "(at least 46; more may fit)" in advice_sentence(run(replace(one, high=None)), 0.05)
    assert advice_sentence(run(replace(one, low=48, high=48)), 0.1).endswith(
        "10\u2009% head-room: 48."
    )


def test_what_it_rests_on_is_said() -> None:
    said = basis(run(advice(planned((8, 9), (16, 9)))))
    assert said[0] == "Rests on 15 steps, two sizes from 8 to 16 samples."
    assert said[1].startswith("Constant for sure: 6.0 GiB of parameters, state and buffers")
    assert "a recording of a few steps would tell" in said[-1]
    replayed = basis(run(replace(advice([8] * 9), is_replayed=True)))
    assert replayed[-1] == "What lies unused between blocks is replayed from a recorded window."


def test_one_size_only_asks_for_probing() -> None:
    assert open_question(run(advice([8] * 20))) == (
        "Steps of one size only: a few probing steps would tell."
    )
    assert basis(run(advice([8] * 20)))[0].endswith("all with 8 samples.")


def test_lengths_and_the_deciding_rank_and_silent_ranks_are_named() -> None:
    peaks = [FIXED + 8 * SAMPLE * (2 if at % 9 == 8 else 1) for at in range(40)]
    one = advice([8] * 40, **{"step.peak_allocated_bytes": peaks})
    said = " ".join(basis(RunAdvice((one, replace(one, rank=1)), {2: "no_batch"}, 3)))
    assert "needed 2.0 times what half of them did" in said
    assert "Rank 0 has the least room of 2 ranks." in said
    assert "1 rank of 3 tell nothing yet: nobody has told how many samples" in said


def test_each_reason_for_silence_has_its_sentence() -> None:
    reasons = {*get_args(Reason), "no_limit", "flat", "too_small"}
    assert set(SILENCES) == reasons
    assert Silence is not None
