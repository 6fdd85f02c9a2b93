"""What the memory of the highest training step consists of, by what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vramscope_analysis.batch.batch_sizes import batch_sizes
from vramscope_analysis.evidence.columns import UNKNOWN, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.waterfall import COLUMNS_OF_STEP, Reading, account

WINDOW_STEPS: Final = 500
FIRST_STEPS: Final = 2
"""The first steps are without the optimizer's state, or with what is only made once."""


@dataclass(frozen=True)
class PeakParts:
    """The highest moment of the training steps, in bytes; None is not known.

    Args:
        peak_bytes: allocated then.
        parameters, gradients, optimizer_state, buffers, activations: of that.
        peak_part: 1 forward, 2 backward, 3 optimizer, 0 not known.
        batch: samples in its batch.
    """

    peak_bytes: int
    parameters: int | None
    gradients: int | None
    optimizer_state: int | None
    buffers: int | None
    activations: int | None
    peak_part: int
    batch: int | None


def phase_steps(rank: RankEvidence, *names: str) -> set[int]:
    """Numbers of the steps in which a phase began; of all phases if none is named."""
    return {
        stretch.step + 1
        for stretch in rank.stretches
        if stretch.step is not None and (not names or stretch.name in names)
    }


def peak_parts(rank: RankEvidence) -> PeakParts | None:
    """Divide the peak of the highest of the last training steps; None where it is not known.

    Steps in which an evaluation, a checkpoint or a phase of the user began count only if there
    are no others.
    """
    start = max(FIRST_STEPS, len(rank.steps) - WINDOW_STEPS)
    rows = rank.steps.after(start)
    peaks = rows.numbers("step.peak_allocated_bytes")
    if rows.number is not None:
        is_other = np.isin(rows.number, list(phase_steps(rank)))
        if np.isfinite(peaks[~is_other]).any():
            peaks[is_other] = np.nan
    if not np.isfinite(peaks).any():
        return None
    at = int(np.nanargmax(peaks))
    return _divided(rank, start + at)


def reading_of(rows: Rows, at: int) -> Reading:
    """The counters of one step row, for the account of its peak."""
    values = {name: _value(rows, column, at) for name, column in COLUMNS_OF_STEP.items()}
    before = _value(rows, "category.optimizer_state_bytes", at - 1) if at else None
    return Reading(**values, optimizer_state_before=before)


def _divided(rank: RankEvidence, row: int) -> PeakParts:
    rows = rank.steps
    reading = reading_of(rows, row)
    parts = account(reading, "peak")
    batch = batch_sizes(rows)[row]
    return PeakParts(
        peak_bytes=reading.peak_allocated or 0,
        parameters=parts["parameters"],
        gradients=parts["gradients"],
        optimizer_state=parts["optimizer_state"],
        buffers=parts["buffers"],
        activations=parts["activations"],
        peak_part=reading.peak_part or 0,
        batch=int(batch) if np.isfinite(batch) else None,
    )


def _value(rows: Rows, name: str, at: int) -> int | None:
    column: Any = rows.columns.get(name)
    if column is None:
        return None
    value = column[at]
    return None if value == UNKNOWN or not np.isfinite(value) else int(value)
