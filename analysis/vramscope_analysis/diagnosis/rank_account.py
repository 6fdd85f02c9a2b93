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
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Numbers
from vramscope_analysis.evidence.run_evidence import RankEvidence

WINDOW_STEPS: Final = 50
WARM_UP_STEPS: Final = 20
DEVIATIONS: Final = 3.0
MIN_SHARE: Final = 0.05
MIN_BYTES: Final = 128 * MIB
PAIR_SHARE: Final = 0.1
"""Two ranks have no spread: there the difference alone has to be larger."""

_CATEGORIES: Final = {
    "parameters": "category.parameters_bytes",
    "gradients": "category.gradients_bytes",
    "optimizer state": "category.optimizer_state_bytes",
    "buffers": "category.buffers_bytes",
}


@dataclass(frozen=True)
class Level:
    """A number of bytes over the last steps.

    Args:
        bytes: its median.
        early_bytes, late_bytes: the same of the first and the second half of these steps.
    """

    bytes: int
    early_bytes: int
    late_bytes: int

    @staticmethod
    def of(values: Numbers) -> Level:
        """The level of values that are all known, one at least."""
        half = max(len(values) // 2, 1)
        parts = (values, values[:half], values[-half:])
        return Level(*(int(np.median(part)) for part in parts))


@dataclass(frozen=True)
class RankAccount:
    """The last steps of one rank, as medians.

    Args:
        rank: its number.
        needed: peak of what tensors took.
        cache: what was reserved beyond that at the peaks; None is not known.
        stranded_bytes: of it, free pieces of segments in use at the ends of steps; None is not
            known.
        left_bytes: of the allocator's limit at the highest of these peaks; None is not known.
        limit_bytes: what the allocator may hold; None is not known.
        total_bytes: size of its device; None is not known.
        parts: of what is used, by name; those that are not known are left out.
        flushes: times that the cache was flushed in these steps; None is not known.
    """

    rank: int
    needed: Level
    cache: Level | None
    stranded_bytes: int | None
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
    cached = np.maximum(rows.numbers("step.peak_reserved_bytes") - most, 0)
    cached = cached[np.isfinite(cached)]
    stranded = rows.numbers("inactive_split_bytes.all.current")
    stranded = stranded[np.isfinite(stranded)]
    limit_bytes = allocator_limit(rank)
    retries = rows.numbers("num_alloc_retries")
    retries = retries[np.isfinite(retries)]
    return RankAccount(
        rank=rank.rank,
        needed=Level.of(peaks),
        cache=Level.of(cached) if len(cached) else None,
        stranded_bytes=int(np.median(stranded)) if len(stranded) else None,
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


def excess(values: Numbers, total_bytes: int) -> Numbers:
    """By how much the number of each rank is above what counts as alike.

    Args:
        values: one a rank, in bytes.
        total_bytes: size of the device of each.
    """
    usual, allowed = float(np.median(values)), max(MIN_SHARE * total_bytes, MIN_BYTES)
    if len(values) == 2:
        usual, allowed = float(values.min()), max(PAIR_SHARE * total_bytes, MIN_BYTES)
    else:
        spread = 1.4826 * float(np.median(np.abs(values - usual)))
        allowed = max(DEVIATIONS * spread, allowed)
    above: Numbers = values - (usual + allowed)
    return above


def standing_out(values: Sequence[Sequence[int]], total_bytes: int) -> list[int]:
    """Which ranks are above the others in each of several rows of numbers, the highest first.

    Args:
        values: rows, each with one number a rank; the first says who is the highest.
        total_bytes: size of the device of each.
    """
    rows = np.array(values, np.float64)
    chosen = np.flatnonzero(np.all([excess(row, total_bytes) > 0 for row in rows], axis=0))
    if len(chosen) > max(1, rows.shape[1] // 4):
        return []  # so many are no exception
    return sorted((int(at) for at in chosen), key=lambda at: -rows[0][at])
