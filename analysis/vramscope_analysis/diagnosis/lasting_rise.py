"""Rises that happen once and stay: a copy of a state, a model that was not let go, a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.trend import kept_level
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Numbers

LEAST_RISE_BYTES: Final = 8 * MIB
LASTING_ROWS: Final = 24
"""So many steps it has to have stayed."""
WORKSPACES: Final = (8_519_680, 33_554_432)
"""What cuBLAS takes for each handle and stream: 8.1 MiB, on Hopper 32 MiB."""

_OF_LEVEL: Final = 0.1
_GOES_ON: Final = 0.5
"""What goes on by so much of the rise after it has not happened once."""
_WITH_WORKSPACE_BYTES: Final = MIB // 2
_WITH_WORKSPACE_BLOCKS: Final = 8
_BLOCK_ROWS: Final = 16
_CHANGE: Final = 0.2
"""Share by which the volume of a step has to change for the job to do something else."""
_SAME: Final = 0.05


@dataclass(frozen=True)
class LastingRise:
    """A rise of the floor that has stayed.

    Args:
        step: the first step at whose end it was there.
        bytes: how much.
        is_workspace: whether it is of the size of a cuBLAS workspace, and in few blocks.
    """

    step: int
    bytes: float
    is_workspace: bool


def lasting_rises(floors: Floors) -> list[LastingRise]:
    """Rises that are over and have stayed, oldest first."""
    if len(floors) < 2 * LASTING_ROWS:
        return []
    level = kept_level(floors.allocated)
    settled = level[: len(level) - LASTING_ROWS + 1]
    if settled[-1] - settled[0] < LEAST_RISE_BYTES:
        return []
    blocks = None if floors.blocks is None else kept_level(floors.blocks)
    rises: list[LastingRise] = []
    for row in np.flatnonzero(np.diff(settled) >= LEAST_RISE_BYTES) + 1:
        rise = float(level[row] - level[row - 1])
        # The longest batch until now makes a table larger; a copy is one more.
        if blocks is not None and blocks[row] <= blocks[row - 1]:
            continue
        is_workspace = _is_workspace(floors, int(row), rise)
        least = max(LEAST_RISE_BYTES, _OF_LEVEL * float(level[row - 1]))
        after = level[row : row + LASTING_ROWS]
        if not is_workspace and (rise < least or after[-1] - after[0] > _GOES_ON * rise):
            continue
        rises.append(LastingRise(int(floors.step[row]), rise, is_workspace))
    return rises


def _is_workspace(floors: Floors, row: int, rise: float) -> bool:
    if not any(0 <= rise - size <= _WITH_WORKSPACE_BYTES for size in WORKSPACES):
        return False
    if floors.blocks is None:
        return False
    return bool(0 < floors.blocks[row] - floors.blocks[row - 1] <= _WITH_WORKSPACE_BLOCKS)


def last_change_step(floors: Floors) -> int | None:
    """The step from which on the job's steps allocate much more or less than before; else None.

    Args:
        floors: the ends of steps.
    """
    if floors.volume is None:
        return None
    blocks = len(floors.volume) // _BLOCK_ROWS
    if blocks < 4:
        return None
    rows = floors.volume[-blocks * _BLOCK_ROWS :].reshape(blocks, _BLOCK_ROWS)
    usual = np.median(rows, axis=1)
    is_even = np.median(np.abs(rows - usual[:, None]), axis=1) <= _SAME * np.maximum(usual, 1)
    for block in range(blocks - 2, 1, -1):
        # The block in which it happened lies between one that is even and the next that is.
        if _has_changed(usual, block) and is_even[block + 1 :].all() and is_even[block - 1]:
            first = len(floors.volume) - (blocks - block) * _BLOCK_ROWS
            return int(floors.step[first])
    return None


def _has_changed(usual: Numbers, block: int) -> bool:
    before, after = float(usual[block - 1]), float(usual[block + 1])
    return abs(after - before) > _CHANGE * max(before, 1.0)
