"""The advice on the batch size as sentences, and why there is none."""

from __future__ import annotations

from typing import Final

from vramscope_analysis.batch.batch_advice import BatchAdvice, Silence
from vramscope_analysis.batch.run_advice import RunAdvice
from vramscope_analysis.diagnosis.words import count_text, share_text, size_text

SILENCES: Final[dict[Silence, str]] = {
    "no_steps": "No step has ended yet.",
    "no_batch": (
        "Nobody has told how many samples a step has: fetch batches from a DataLoader, or tell it "
        "with vramscope.log(batch_size=...)."
    ),
    "no_peaks": "The peaks of steps are not measured here.",
    "too_few": "Too few steps yet: three in a row of one size count, after the first ones.",
    "changing": "The batch size changes from step to step: none was seen three times in a row.",
    "no_limit": "It is not known how much memory the job may have.",
    "flat": "What a step needs does not depend on its batch.",
    "too_small": "Not even one sample leaves as much free as is asked for.",
}
"""Each reason for silence in one sentence."""


def advice_sentence(advice: RunAdvice, head_room: float) -> str:
    """The advice: ``Largest batch that fits with 5 % head-room: 48 (range 46 to 50).``"""
    low, high = advice.low, advice.high
    if high is None:
        between = f" (at least {low:,}; more may fit)"
    elif low == high == advice.batch:
        between = ""
    else:
        between = f" (range {low:,} to {high:,})"
    share = share_text(head_room).replace(".0", "")
    return f"Largest batch that fits with {share} head-room: {advice.batch:,}{between}."


def basis(advice: RunAdvice) -> list[str]:
    """What it rests on, the most important first."""
    one = advice.deciding
    found = [_tried(one), _cost(one)]
    if one.model.is_varying:
        found.append(
            f"Samples are not alike: the longest of {count_text(one.steps, 'step')} needed "
            f"{one.model.spread:.1f} times what half of them did; it holds for that one."
        )
    if one.model.exponent:
        found.append("A sample needs more the larger the batch is; that is carried on.")
    found.append(_waste(one))
    if len(advice.ranks) > 1:
        found.append(f"Rank {one.rank} has the least room of {len(advice.ranks)} ranks.")
    if advice.silent:
        ranks = count_text(len(advice.silent), "rank")
        why = SILENCES[next(iter(advice.silent.values()))]
        found.append(f"{ranks} of {advice.world_size} tell nothing yet: {_lower(why)}")
    if one.grows_bytes:
        found.append(
            f"Memory rose by {size_text(one.grows_bytes)} within these steps: "
            "it holds only as long as that does not go on."
        )
    if one.ran_out_at is not None:
        found.append(f"With {count_text(one.ran_out_at, 'sample')} memory ran out.")
    if one.retries:
        found.append("At that size the cache is flushed within steps, which are slower then.")
    return found


def open_question(advice: RunAdvice) -> str:
    """What would tell more; empty where nothing is open."""
    one = advice.deciding
    if advice.confidence == "high" or one.grows_bytes:
        return ""
    if len(one.model.sizes) == 1:
        return "Steps of one size only: a few probing steps would tell."
    if one.high is not None and one.high > advice.batch:
        return "A few steps at a larger size would narrow the range."
    return ""


def _tried(one: BatchAdvice) -> str:
    count, largest = len(one.model.sizes), one.model.largest
    if count == 1:
        what = f"all with {count_text(largest, 'sample')}"
    else:
        sizes = f"{count} sizes" if count > 2 else "two sizes"
        what = f"{sizes} from {one.model.sizes[0]:,} to {largest:,} samples"
    return f"Rests on {count_text(one.steps, 'step')}, {what}."


def _cost(one: BatchAdvice) -> str:
    model = one.model
    each = f"at most {size_text(model.sample_bytes)} a sample"
    if not model.fixed_bytes:
        return f"Of the peak nothing is known to be constant: {each}."
    return (
        f"Constant for sure: {size_text(model.fixed_bytes)} of parameters, state and buffers; "
        f"the rest {each}."
    )


def _waste(one: BatchAdvice) -> str:
    if one.is_replayed:
        return "What lies unused between blocks is replayed from a recorded window."
    return (
        f"{size_text(one.room.waste_bytes)} are left for what lies unused between blocks, by rule "
        "of thumb: a recording of a few steps would tell."
    )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
