"""What each rank used at the peaks of its last steps, in parts that can be set side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.head_room import (
    allocator_limit,
    needed,
    others_bytes,
    outside_bytes,
)
from vramscope_analysis.evidence.run_evidence import RankEvidence

WINDOW_STEPS: Final = 50
WARM_UP_STEPS: Final = 20

_CATEGORIES: Final = {
    "parameters": "category.parameters_bytes",
    "gradients": "category.gradients_bytes",
    "optimizer state": "category.optimizer_state_bytes",
    "buffers": "category.buffers_bytes",
}


@dataclass(frozen=True)
class RankAccount:
    """The last steps of one rank, as medians.

    Args:
        rank: its number.
        needed_bytes: peak of what tensors took.
        early_bytes, late_bytes: the same of the first and the second half of these steps.
        left_bytes: of the allocator's limit at the highest of these peaks; None is not known.
        limit_bytes: what the allocator may hold; None is not known.
        total_bytes: size of its device; None is not known.
        parts: of what is used, by name; those that are not known are left out.
        flushes: times that the cache was flushed in these steps; None is not known.
    """

    rank: int
    needed_bytes: int
    early_bytes: int
    late_bytes: int
    left_bytes: int | None
    limit_bytes: int | None
    total_bytes: int | None
    parts: Mapping[str, int]
    flushes: int | None


def rank_account(rank: RankEvidence) -> RankAccount | None:
    """The account of one rank; None while it has too few steps after warm-up."""
    rows = rank.steps.after(max(WARM_UP_STEPS, len(rank.steps) - WINDOW_STEPS))
    most = needed(rows)
    known = np.flatnonzero(np.isfinite(most))
    if len(known) < WINDOW_STEPS // 2:
        return None
    peaks = most[known]
    half = len(peaks) // 2
    limit_bytes = allocator_limit(rank)
    retries = rows.numbers("num_alloc_retries")
    retries = retries[np.isfinite(retries)]
    return RankAccount(
        rank=rank.rank,
        needed_bytes=int(np.median(peaks)),
        early_bytes=int(np.median(peaks[:half])),
        late_bytes=int(np.median(peaks[half:])),
        left_bytes=None if limit_bytes is None else limit_bytes - int(peaks.max()),
        limit_bytes=limit_bytes,
        total_bytes=rank.total_bytes,
        parts=_parts(rank, int(np.median(peaks))),
        flushes=int(retries[-1] - retries[0]) if len(retries) else None,
    )


def _parts(rank: RankEvidence, peak_bytes: int) -> dict[str, int]:
    rows = rank.steps.after(-WINDOW_STEPS)
    parts: dict[str, int] = {}
    for name, column in _CATEGORIES.items():
        values = rows.numbers(column)
        values = values[np.isfinite(values)]
        if len(values):
            parts[name] = int(np.median(values))
    if len(parts) == len(_CATEGORIES):
        # Gradients of the step's end are not all there at the peak: what is more is of both.
        parts["activations"] = max(peak_bytes - sum(parts.values()), 0)
    reserved = rows.numbers("step.peak_reserved_bytes")
    reserved = reserved[np.isfinite(reserved)]
    if len(reserved):
        parts["cache"] = max(int(np.median(reserved)) - peak_bytes, 0)
    if rank.outside:
        parts["outside of PyTorch"] = outside_bytes(rank)
    others = others_bytes(rank)
    if others is not None:
        parts["other processes"] = others
    return parts


def median_parts(accounts: Sequence[RankAccount]) -> dict[str, int]:
    """The median of each part over the ranks that all of them know it of."""
    names = set(accounts[0].parts) if accounts else set[str]()
    for account in accounts:
        names &= set(account.parts)
    return {name: int(np.median([each.parts[name] for each in accounts])) for name in names}
