"""The floor of a job: what is allocated at the end of each step, and what accounts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.columns import Numbers, Rows

ALLOCATED: Final = "allocated_bytes.all.current"
BLOCKS: Final = "allocation.all.current"
VOLUME: Final = "step.allocated_volume_bytes"
CATEGORIES: Final = (
    "category.parameters_bytes",
    "category.gradients_bytes",
    "category.optimizer_state_bytes",
    "category.buffers_bytes",
)

WARM_UP_ROWS: Final = 8
"""Rows at the beginning of a job in which the optimizer's state, workspaces and caches come."""
_FIRST_STEPS: Final = 2
"""A first row of at most this number is the beginning of the job; else it was attached later."""
_KNOWN_SHARE: Final = 0.9


@dataclass(frozen=True, eq=False)
class Floors:
    """The ends of steps, without those of the warm-up and those that are not known.

    Args:
        step: number of each step, strictly rising; there may be gaps.
        time_ns: when each ended.
        allocated: bytes in tensors.
        blocks: how many blocks hold them; None is not known.
        named: bytes of parameters, gradients, optimizer state and buffers; None is not known.
        volume: bytes that were handed out within the step; None is not known.
        row: of each, its row among all.
    """

    step: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    allocated: Numbers
    blocks: Numbers | None
    named: Numbers | None
    volume: Numbers | None
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.step)

    def columns(self) -> tuple[Numbers, Numbers | None]:
        """What has to grow together in a leak: bytes and blocks."""
        return self.allocated, self.blocks


def floors_of(steps: Rows) -> Floors:
    """The floors of all steps whose counters are known."""
    number = np.arange(len(steps), dtype=np.int64) if steps.number is None else steps.number
    allocated = steps.numbers(ALLOCATED)
    start = _beginning(number)
    if len(number) > start and number[start] <= _FIRST_STEPS:
        start += WARM_UP_ROWS
    row = np.arange(start, len(number), dtype=np.int64)
    row = row[~np.isnan(allocated[start:])]
    return Floors(
        number[row],
        steps.time_ns[row],
        allocated[row],
        _known(steps.numbers(BLOCKS)[row]),
        _named(steps, row),
        _known(steps.numbers(VOLUME)[row]),
        row,
    )


def _beginning(number: NDArray[np.int64]) -> int:
    """Where the rows begin that are numbered upwards to the newest."""
    back = np.flatnonzero(np.diff(number) <= 0)
    return int(back[-1]) + 1 if len(back) else 0


def _known(column: Numbers) -> Numbers | None:
    """A column with its gaps closed by the value before; None where too much is missing."""
    unknown = np.isnan(column)
    if not unknown.any():
        return column
    if len(column) == 0 or (~unknown).mean() < _KNOWN_SHARE:
        return None
    last = np.maximum.accumulate(np.where(unknown, -1, np.arange(len(column))))
    last[last < 0] = int(np.argmin(unknown))
    filled: Numbers = column[last]
    return filled


def _named(steps: Rows, row: NDArray[np.int64]) -> Numbers | None:
    if not all(name in steps.columns for name in CATEGORIES):
        return None
    return _known(sum((steps.numbers(name)[row] for name in CATEGORIES), np.zeros(len(row))))
