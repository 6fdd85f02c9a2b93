"""How the peak of a step depends on its batch size, where a job has tried several sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.batch.batch_sizes import batch_sizes
from vramscope_analysis.diagnosis.peak_parts import FIRST_STEPS, phase_steps
from vramscope_analysis.evidence.run_evidence import RankEvidence

STEPS_A_SIZE: Final = 3
"""A size counts when so many steps had it."""
MOST_MISFIT: Final = 0.05
"""Largest distance of a size's peak from the line, as part of the highest peak."""


@dataclass(frozen=True)
class BatchFit:
    """A straight line through the peaks of several batch sizes.

    Args:
        bytes_per_sample: its slope.
        smallest, largest_tried: the sizes that it was measured at.
    """

    bytes_per_sample: int
    smallest: int
    largest_tried: int


def batch_fit(rank: RankEvidence) -> BatchFit | None:
    """Fit the peaks against the batch sizes; None where the sizes do not tell."""
    rows = rank.steps.after(FIRST_STEPS)
    batch, peak = batch_sizes(rows), rows.numbers("step.peak_allocated_bytes")
    usable = np.isfinite(batch) & np.isfinite(peak) & (batch >= 1)
    if rows.number is not None:
        usable &= ~np.isin(rows.number, list(phase_steps(rank)))
    sizes, counts = np.unique(batch[usable], return_counts=True)
    sizes = sizes[counts >= STEPS_A_SIZE]
    if len(sizes) < 2 or sizes[-1] < 1.25 * sizes[0]:
        return None
    peaks = np.array([peak[usable & (batch == size)].max() for size in sizes])
    slope, fixed = (float(value) for value in np.polyfit(sizes, peaks, 1))
    misfit = np.abs(peaks - (fixed + slope * sizes)).max()
    if slope <= 0 or fixed < 0 or misfit > MOST_MISFIT * peaks.max():
        return None
    return BatchFit(round(slope), int(sizes[0]), int(sizes[-1]))
