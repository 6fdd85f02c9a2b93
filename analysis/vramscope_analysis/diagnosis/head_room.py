"""How much memory is left to a process at the highest moments of its last steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

WINDOW_STEPS: Final = 200


@dataclass(frozen=True)
class HeadRoom:
    """What PyTorch's allocator may have, and what it needed at most.

    Args:
        limit_bytes: what it may hold, the memory of others and of this process's own libraries
            taken off.
        needed_bytes: most that tensors took, blocks that other streams still used included.
        reserved_bytes: most that was held from the device.
        at_step: the step that needed most; None is not known.
        steps: how many steps this is of.
    """

    limit_bytes: int
    needed_bytes: int
    reserved_bytes: int
    at_step: int | None
    steps: int

    @property
    def left_bytes(self) -> int:
        """What was left; below 0 nothing."""
        return self.limit_bytes - self.needed_bytes

    @property
    def left_share(self) -> float:
        """The same as part of the limit."""
        return self.left_bytes / self.limit_bytes


def allocator_limit(rank: RankEvidence) -> int | None:
    """What PyTorch's allocator may hold at most: its cap, or what others leave of the device."""
    limits = [] if rank.limit_bytes is None else [rank.limit_bytes]
    usable_bytes = _usable_bytes(rank)
    if usable_bytes is not None:
        limits.append(usable_bytes - outside_bytes(rank) - (others_bytes(rank) or 0))
    known = [limit for limit in limits if limit > 0]
    return min(known) if known else None


def outside_bytes(rank: RankEvidence) -> int:
    """What the process holds of the device beside PyTorch's allocator, as far as it is known."""
    return sum(size for part in rank.outside if (size := _bytes(part.get("bytes"))) is not None)


def others_bytes(rank: RankEvidence) -> int | None:
    """What other processes hold of the device; None where they cannot be seen."""
    if rank.processes:
        others = (each for each in rank.processes if not each.get("own"))
        return sum(size for each in others if (size := _bytes(each.get("bytes"))) is not None)
    return rank.samples.last("device.other_bytes")


def needed(rows: Rows) -> Numbers:
    """Most that tensors took within each step; NaN where it is not known."""
    active = rows.numbers("step.peak_active_bytes")
    return np.where(np.isnan(active), rows.numbers("step.peak_allocated_bytes"), active)


def head_room(rank: RankEvidence, window_steps: int = WINDOW_STEPS) -> HeadRoom | None:
    """What was left in the last steps; None where that is not known.

    Args:
        rank: the process.
        window_steps: how many steps to look back.
    """
    limit_bytes = allocator_limit(rank)
    rows = rank.steps.after(-window_steps)
    most = needed(rows)
    known = np.flatnonzero(np.isfinite(most))
    if limit_bytes is None or not len(known):
        return None
    at = int(known[np.argmax(most[known])])
    reserved = rows.numbers("step.peak_reserved_bytes")
    reserved = reserved[np.isfinite(reserved)]
    needed_bytes = int(most[at])
    return HeadRoom(
        limit_bytes,
        needed_bytes,
        max(int(reserved.max()), needed_bytes) if len(reserved) else needed_bytes,
        None if rows.number is None else int(rows.number[at]),
        len(known),
    )


def _usable_bytes(rank: RankEvidence) -> int | None:
    """The device without what its driver keeps for itself, 0.6 GiB of an H200."""
    used = rank.samples.last("device.used_bytes")
    free = rank.samples.last("device.free_bytes")
    if rank.total_bytes is None or used is None or free is None:
        return rank.total_bytes
    return min(rank.total_bytes, used + free)


def _bytes(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
