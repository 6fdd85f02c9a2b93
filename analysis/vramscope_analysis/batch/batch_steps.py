"""The steps of a rank that tell how its memory depends on the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.batch.batch_sizes import batch_sizes, passes
from vramscope_analysis.diagnosis.head_room import needed
from vramscope_analysis.diagnosis.peak_parts import FIRST_STEPS, phase_steps
from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

STEPS_A_SIZE: Final = 3
"""A size counts when so many steps had it."""
MOST_ROWS: Final = 1024

_WHOLE_STATE: Final = 0.95
_FIXED: Final = ("parameters", "optimizer_state", "buffers", "gradients_kept")

Reason = Literal["no_steps", "no_batch", "no_peaks", "too_few", "changing"]


@dataclass(frozen=True, eq=False)
class BatchSteps:
    """Steps that are evidence, oldest first.

    A step is none if it is among the first, if the optimizer's state was not whole when it began,
    if the step before had another size (its loss and outputs may still have been there), or if
    something else went on in it, such as an evaluation.

    Args:
        sizes: samples of one forward pass.
        peaks: most that tensors took.
        fixed: of that, what surely does not depend on the batch: parameters, optimizer state,
            buffers, and gradients that were kept from the pass before.
        gradients: that came during the step; 0 where it is not known.
        state: the optimizer's state in ``fixed``.
        floors: what was allocated at its end.
        is_optimizer: whether the peak was in the optimizer's part.
        reason: why there are too few of them; None if there are enough.
        current: samples of a forward pass in the newest step; None is not known.
        passes: forward passes in the newest step; None is not known.
    """

    sizes: NDArray[np.int64]
    peaks: Numbers
    fixed: Numbers
    gradients: Numbers
    state: Numbers
    floors: Numbers
    is_optimizer: NDArray[np.bool_]
    reason: Reason | None
    current: int | None
    passes: int | None

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def extra(self) -> Numbers:
        """What was needed beyond what surely does not depend on the batch."""
        return np.maximum(self.peaks - self.fixed, 0)

    @property
    def tried(self) -> list[int]:
        """The sizes that were seen often enough, from the smallest."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return [int(size) for size in sizes[counts >= STEPS_A_SIZE]]


def batch_steps(rank: RankEvidence) -> BatchSteps:
    """Choose the steps of a rank that tell."""
    rows = rank.steps.after(-MOST_ROWS)
    sizes, most = batch_sizes(rows), needed(rows)
    parts = {name: rows.numbers(f"category.{name}_bytes") for name in (*_FIXED, "gradients")}
    usable = np.isfinite(sizes) & np.isfinite(most) & _is_trained(rank, rows)
    usable &= _has_state(parts["optimizer_state"])
    steady = usable & _like_the_one_before(sizes, rows)
    chosen = np.flatnonzero(steady)
    kept = _known(parts["gradients_kept"])
    found = BatchSteps(
        sizes[chosen].astype(np.int64),
        most[chosen],
        np.sum([_known(parts[name]) for name in _FIXED], axis=0)[chosen],
        np.maximum(_known(parts["gradients"]) - kept, 0)[chosen],
        _known(parts["optimizer_state"])[chosen],
        rows.numbers("allocated_bytes.all.current")[chosen],
        rows.numbers("step.peak_part")[chosen] == 3,
        None,
        _last(sizes),
        _last(passes(rows)),
    )
    if found.tried:
        return found
    return _without(found, _reason(rows, sizes, most, usable))


def _is_trained(rank: RankEvidence, rows: Rows) -> NDArray[np.bool_]:
    """Neither one of the first steps of the process, nor one in which something else went on."""
    if rows.number is None:
        return np.ones(len(rows), np.bool_)
    return (rows.number > FIRST_STEPS) & ~np.isin(rows.number, list(phase_steps(rank)))


def _has_state(state: Numbers) -> NDArray[np.bool_]:
    """Whether the optimizer's state was there, as far as it is now, when a step began."""
    last = _last(state)
    if last is None:
        return np.ones(len(state), np.bool_)
    before = np.concatenate([[np.nan], state[:-1]])
    return np.asarray(np.isnan(before) | (before >= _WHOLE_STATE * last), np.bool_)


def _like_the_one_before(sizes: Numbers, rows: Rows) -> NDArray[np.bool_]:
    alike = np.zeros(len(sizes), np.bool_)
    alike[1:] = sizes[1:] == sizes[:-1]
    if rows.number is not None:
        alike[1:] &= np.diff(rows.number) == 1
    return alike


def _reason(rows: Rows, sizes: Numbers, most: Numbers, usable: NDArray[np.bool_]) -> Reason:
    if not len(rows):
        return "no_steps"
    if not np.isfinite(sizes).any():
        return "no_batch"
    if not np.isfinite(most).any():
        return "no_peaks"
    return "changing" if np.count_nonzero(usable) >= 4 * STEPS_A_SIZE else "too_few"


def _without(found: BatchSteps, reason: Reason) -> BatchSteps:
    return BatchSteps(
        found.sizes,
        found.peaks,
        found.fixed,
        found.gradients,
        found.state,
        found.floors,
        found.is_optimizer,
        reason,
        found.current,
        found.passes,
    )


def _known(column: Numbers) -> Numbers:
    return np.nan_to_num(column, nan=0.0)


def _last(column: Numbers) -> int | None:
    known = np.flatnonzero(np.isfinite(column))
    return int(column[known[-1]]) if len(known) else None
