"""What the allocator holds beyond what tensors ever took, and beyond what they take lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.head_room import allocator_limit, needed
from vramscope_analysis.diagnosis.peak_parts import phase_steps
from vramscope_analysis.evidence.columns import Numbers, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

WINDOW_STEPS: Final = 50
STALE_SHARE: Final = 0.1
"""A look that differs by more than this part of what is reserved now is of another time."""
LEAST_SHARE: Final = 0.1
"""With less than this part of it free at the peaks of the last steps there is nothing to say."""


@dataclass(frozen=True)
class CacheUse:
    """Reserved memory of the last steps, against what was needed.

    Args:
        reserved_bytes: held at the end of each of the last steps, the least of them.
        highest_bytes: most that tensors ever took at once.
        lately_bytes: most that they took in the last steps, those of other phases left out.
        private_bytes: free memory of graphs and pools of the job; None is not known.
        returnable_bytes: what emptying the cache would give back; None is not known.
        stranded_bytes: free pieces of segments in use; None is not known.
        largest_free_bytes: the largest free piece; None is not known.
        limit_bytes: what the allocator may hold; None is not known.
        highest_step: when most was taken, for the first time.
        last_step: when more than lately was taken, for the last time; None is never, or not known.
        idle_steps: steps since tensors last took more than lately.
    """

    reserved_bytes: int
    highest_bytes: int
    lately_bytes: int
    private_bytes: int | None
    returnable_bytes: int | None
    stranded_bytes: int | None
    largest_free_bytes: int | None
    limit_bytes: int | None
    highest_step: int | None
    last_step: int | None
    idle_steps: int

    @property
    def unexplained_bytes(self) -> int:
        """Reserved and never needed at once: lost to pieces, streams and rounding of segments."""
        return max(self.reserved_bytes - self.highest_bytes - (self.private_bytes or 0), 0)

    @property
    def unused_bytes(self) -> int:
        """Reserved and not needed in the last steps."""
        unused = self.reserved_bytes - self.lately_bytes - (self.private_bytes or 0)
        known = unused if self.returnable_bytes is None else min(unused, self.returnable_bytes)
        return max(known, 0)


def cache_use(rank: RankEvidence, min_steps: int) -> CacheUse | None:
    """How the cache is used; None while that is not known, or nearly all of it is in use.

    Args:
        rank: the process.
        min_steps: so many steps have to be over.
    """
    rows = rank.steps
    late = rows.after(-WINDOW_STEPS)
    reserved = late.numbers("reserved_bytes.all.current")
    if len(rows) < min_steps or not np.isfinite(reserved).any():
        return None
    is_late = _lately(rank, late)
    lately = needed(late)[is_late]
    reserved_bytes, lately_bytes = int(np.nanmin(reserved)), _highest(lately)
    if lately_bytes is None or reserved_bytes - lately_bytes < LEAST_SHARE * reserved_bytes:
        return None
    most = needed(rows)
    # PyTorch's own peak also counts what was before the first step that was seen.
    most = np.fmax(most, rows.numbers("allocated_bytes.all.peak"))
    highest = int(np.nanargmax(most))
    above = np.flatnonzero(np.nan_to_num(needed(rows)) > 1.02 * lately_bytes)
    look = _last_look(rank)
    return CacheUse(
        reserved_bytes=reserved_bytes,
        highest_bytes=int(most[highest]),
        lately_bytes=lately_bytes,
        private_bytes=look.get("private_pool"),
        returnable_bytes=look.get("returnable"),
        stranded_bytes=look.get("stranded"),
        largest_free_bytes=look.get("largest_free"),
        limit_bytes=allocator_limit(rank),
        highest_step=None if rows.number is None else int(rows.number[highest]),
        last_step=int(rows.number[above[-1]]) if rows.number is not None and len(above) else None,
        idle_steps=len(rows) - (int(above[-1]) + 1 if len(above) else 0),
    )


def _last_look(rank: RankEvidence) -> dict[str, int]:
    """The last look at the segments; empty if it is of a time at which there were others."""
    names = ("private_pool", "returnable", "stranded", "largest_free")
    last = {name: rank.samples.last(f"cache.{name}_bytes") for name in names}
    look = {name: size for name, size in last.items() if size is not None}
    reserved = rank.steps.last("reserved_bytes.all.current")
    active = rank.steps.last("active_bytes.all.current")
    if reserved is None or active is None:
        return look
    free = sum(look.get(name, 0) for name in ("private_pool", "returnable", "stranded"))
    return look if abs(free - (reserved - active)) <= STALE_SHARE * reserved else {}


def _lately(rank: RankEvidence, late: Rows) -> NDArray[np.bool_]:
    """Which of the last steps are training: all of them if none is without another phase."""
    everything = np.ones(len(late), np.bool_)
    if late.number is None:
        return everything
    training = ~np.isin(late.number, list(phase_steps(rank)))
    return training if np.isfinite(needed(late)[training]).any() else everything


def _highest(values: Numbers) -> int | None:
    known = values[np.isfinite(values)]
    return int(known.max()) if len(known) else None
