"""What would make a job need less memory, as far as its own numbers show that it would help.

The measures are those that every guide teaches. Each has a condition here that this job's
measurements have to meet, what it would free, and what it costs; where the numbers do not show that
it helps, it is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.batch_fit import batch_fit
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.known_types import known_types
from vramscope_analysis.diagnosis.optimizer_advice import (
    fused_step,
    offloaded_state,
    sharded_state,
    smaller_state,
)
from vramscope_analysis.diagnosis.peak_parts import FIRST_STEPS, PeakParts, peak_parts, phase_steps
from vramscope_analysis.diagnosis.words import MIB, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

MIN_STEPS: Final = 20
WORTH_SHARE: Final = 0.02
WORTH_BYTES: Final = 16 * MIB
"""What frees less than this part of the peak, or less than this, is not worth a change."""
WINDOW_STEPS: Final = 100
LEAST_FLOAT32: Final = 0.5
"""Of the activations whose type is known, so many have to be float32 for half precision to help."""

FORWARD: Final = 1
BACKWARD: Final = 2


def advise(rank: RankEvidence) -> tuple[Remedy, ...]:
    """Measures that this job's own numbers speak for, the most effective first."""
    parts = peak_parts(rank) if len(rank.steps) >= MIN_STEPS else None
    if parts is None:
        return ()
    found = [remedy for measure in MEASURES if (remedy := measure(rank, parts)) is not None]
    worth = [remedy for remedy in found if _is_worth_it(remedy, parts)]
    return tuple(sorted(worth, key=lambda remedy: -(remedy.predicted_bytes or 0)))


def halved_batch(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Half the batch, twice accumulated: where activations are a good part of the peak."""
    activations = parts.activations or 0
    if activations < 0.25 * parts.peak_bytes or parts.batch == 1:
        return None
    predicted, measured = activations // 2, "about half of the activations at the peak"
    fit = batch_fit(rank)
    if fit is not None and parts.batch is not None:
        predicted = fit.bytes_per_sample * (parts.batch - parts.batch // 2)
        sizes = f"{fit.smallest} to {fit.largest_tried}"
        measured = f"measured: {size_text(fit.bytes_per_sample)} for each sample, sizes {sizes}"
    sizes = "" if parts.batch is None else f" ({parts.batch} to {parts.batch // 2})"
    return Remedy(
        f"halve the batch{sizes} and accumulate the gradients of 2",
        f"{measured[0].upper()}{measured[1:]}; the optimizer sees the same number of samples.",
        predicted,
        "two smaller passes in place of one; statistics of batch normalisation change",
    )


def checkpointing(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Compute activations again: where the forward pass piles them up for the backward pass."""
    activations = parts.activations or 0
    rows = rank.steps.after(FIRST_STEPS)
    forward = rows.numbers("part.forward.peak_bytes")
    floor = rows.numbers("allocated_bytes.all.current")
    rise = rows.numbers("step.peak_allocated_bytes") - floor
    split = np.isfinite(forward) & np.isfinite(rise) & (rise > 0)
    if activations < 0.5 * parts.peak_bytes or parts.peak_part not in (FORWARD, BACKWARD):
        return None
    # With checkpoints already there the forward pass ends far below the peak of the backward.
    if not split.any() or np.median((forward - floor)[split] / rise[split]) < 0.7:
        return None
    time_us = rows.numbers("part.forward.time_us") / rows.numbers("step.duration_us")
    shares = time_us[np.isfinite(time_us)]
    cost = "a second forward pass in each step"
    if len(shares):
        cost = f"{cost}: about {share_text(float(np.median(shares)))} of the step time"
    return Remedy(
        "checkpoint the blocks of the model",
        f"The forward pass piles up most of {size_text(activations)} of activations; checkpointed "
        "blocks keep only their inputs.",
        None,
        cost,
        "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    )


def mixed_precision(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Activations in half precision: where they are known to be in float32.

    Autocast keeps a copy of each weight in half precision during the forward pass.
    """
    types = known_types(rank)
    activations, parameters = parts.activations, parts.parameters
    if types is None or types.float32_share < LEAST_FLOAT32:
        return None
    if activations is None or parameters is None or parts.peak_part not in (FORWARD, BACKWARD):
        return None
    halved = int(activations * types.float32_share) // 2
    if halved <= parameters // 2:
        return None
    return Remedy(
        "compute in bfloat16: torch.autocast",
        f"When memory ran out {share_text(types.float32_share)} of the largest activations were "
        f"float32: half of it, less copies of the weights of {size_text(parameters // 2)}.",
        halved - parameters // 2,
        "fewer digits in activations: compare the loss of both",
        'with torch.autocast("cuda", dtype=torch.bfloat16):',
    )


def kept_gradients(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Free gradients before the forward pass: where they are kept and filled with zeros."""
    rows = rank.steps.after(-WINDOW_STEPS)
    kept = rows.numbers("category.gradients_kept_bytes")
    whole = rows.numbers("category.gradients_bytes")
    known = np.isfinite(kept) & np.isfinite(whole) & (whole > 0)
    if known.sum() < MIN_STEPS or (kept[known] >= 0.9 * whole[known]).mean() < 0.8:
        return None
    in_forward = parts.peak_part == FORWARD
    size_bytes = int(np.median(kept[known]))
    where = "at the peak, which is in the forward pass" if in_forward else "in the forward pass"
    return Remedy(
        "set gradients to None instead of zero",
        f"{size_text(size_bytes)} of gradients stay in memory {where}.",
        size_bytes if in_forward else None,
        "",
        "optimizer.zero_grad(set_to_none=True)",
    )


def smaller_evaluation(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Evaluate in smaller batches: where an evaluation is higher than training ever is."""
    peaks = [
        stretch.peak_bytes
        for stretch in rank.stretches
        if stretch.name == "eval" and stretch.peak_bytes is not None
    ]
    above = max(peaks, default=0) - parts.peak_bytes
    if above <= 0:
        return None
    return Remedy(
        "evaluate in smaller batches, under torch.no_grad()",
        f"The evaluation is {size_text(above)} higher than the highest training step.",
        above,
        "the evaluation takes longer",
    )


def kept_outputs(rank: RankEvidence, parts: PeakParts) -> Remedy | None:
    """Drop what is left of a step before the next: where it is as large as the step's batch."""
    del parts
    rows = rank.steps.after(max(FIRST_STEPS, len(rank.steps) - WINDOW_STEPS))
    categories = ("parameters", "gradients", "optimizer_state", "buffers")
    named = sum(rows.numbers(f"category.{name}_bytes") for name in categories)
    left = rows.numbers("allocated_bytes.all.current") - named
    rise = rows.numbers("step.peak_allocated_bytes") - rows.numbers("allocated_bytes.all.current")
    known = np.isfinite(left) & np.isfinite(rise)
    if rows.number is not None:
        known &= ~np.isin(rows.number, list(phase_steps(rank)))
    left, rise = left[known], rise[known]
    # Only a job whose steps differ in size tells leftovers from what is there for good.
    if len(left) < MIN_STEPS or rise.std() < 0.1 * rise.mean() or left.std() < WORTH_BYTES / 4:
        return None
    if np.corrcoef(left, rise)[0, 1] < 0.9:
        return None
    varying = int(np.polyfit(rise, left, 1)[0] * rise.max())
    return Remedy(
        "delete outputs and loss at the end of a step",
        f"Up to {size_text(varying)} of each step, in proportion to its size, stay until the next "
        "has replaced them.",
        varying,
        "",
        "del outputs, loss",
    )


MEASURES: Final[tuple[Callable[[RankEvidence, PeakParts], Remedy | None], ...]] = (
    halved_batch,
    checkpointing,
    mixed_precision,
    kept_gradients,
    smaller_state,
    sharded_state,
    fused_step,
    offloaded_state,
    smaller_evaluation,
    kept_outputs,
)
"""In the order in which those are told that free as much."""


def _is_worth_it(remedy: Remedy, parts: PeakParts) -> bool:
    if remedy.predicted_bytes is None:
        return True
    return remedy.predicted_bytes >= max(WORTH_BYTES, WORTH_SHARE * parts.peak_bytes)
