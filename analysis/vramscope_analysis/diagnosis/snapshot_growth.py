"""The finding ``leak`` of a recording: sources whose live memory grows from step end to step end.

A recording is short. What grows over all of it may be a list that fills up to a bound, so it stays
a suspicion; but the line is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.diagnosis.finding import Culprit, Finding
from vramscope_analysis.diagnosis.words import (
    KIB,
    count_text,
    fitting,
    place_text,
    rate_text,
    size_text,
)
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.recorded_memory import RecordedMemory

KIND: Final = "leak"
WARM_UP_ENDS: Final = 2
"""The first steps make the optimizer's state and what libraries keep."""
MIN_ENDS: Final = 4
MOST_ENDS: Final = 12
MIN_BYTES_PER_STEP: Final = 64 * KIB
MOST_TOLD: Final = 3
_CONSTANT: Final = (Category.PARAMETERS, Category.OPTIMIZER)
_LINE: Final = re.compile(r":(\d+) ")


@dataclass(frozen=True)
class SourceGrowth:
    """A source that grew between all of the step ends that were looked at.

    Args:
        source: its index; of a recording without stacks the size that was asked for.
        bytes_at: live at each of the ends.
        count_at: blocks at each of them.
        steps: from the first of the ends to the last.
    """

    source: int
    bytes_at: tuple[int, ...]
    count_at: tuple[int, ...]
    steps: int

    @property
    def bytes_per_step(self) -> float:
        """How fast."""
        return (self.bytes_at[-1] - self.bytes_at[0]) / self.steps


def snapshot_growth(memory: RecordedMemory) -> list[Finding]:
    """Judge what grew from step end to step end, by the line that allocated it."""
    found = growing_sources(memory)
    return [_finding(memory, growth) for growth in found[:MOST_TOLD]]


def growing_sources(memory: RecordedMemory) -> list[SourceGrowth]:
    """Sources that had more bytes and more blocks at each step end than at the one before."""
    ends = [end.moment for end in memory.step_ends if end.moment >= 0][WARM_UP_ENDS:]
    if len(ends) < MIN_ENDS:
        return []
    looks = min(len(ends), MOST_ENDS)
    places = [look * (len(ends) - 1) // (looks - 1) for look in range(looks)]
    chosen = [ends[place] for place in places]
    key = _keys(memory)
    kinds = int(key.max()) + 1 if len(key) else 0
    sizes, counts = np.zeros((2, len(chosen), kinds), np.int64)
    for row, moment in enumerate(chosen):
        live = memory.lifetimes.live_at(moment)
        sizes[row] = np.bincount(key[live], memory.lifetimes.size[live], kinds)
        counts[row] = np.bincount(key[live], minlength=kinds)
    grows = (np.diff(sizes, axis=0) > 0).all(axis=0) & (np.diff(counts, axis=0) > 0).all(axis=0)
    steps = places[-1] - places[0]
    found = [
        SourceGrowth(at, tuple(sizes[:, at].tolist()), tuple(counts[:, at].tolist()), steps)
        for at in np.flatnonzero(grows).tolist()
    ]
    found = [
        growth
        for growth in found
        if growth.bytes_per_step >= MIN_BYTES_PER_STEP and not _is_constant(memory, growth)
    ]
    return sorted(found, key=lambda growth: -growth.bytes_per_step)


def _keys(memory: RecordedMemory) -> NDArray[np.int64]:
    """What blocks are told apart by: their source, or without stacks what was asked for."""
    if memory.has_stacks:
        return memory.source_of.astype(np.int64)
    _, index = np.unique(memory.lifetimes.requested, return_inverse=True)
    return index.astype(np.int64)


def _is_constant(memory: RecordedMemory, growth: SourceGrowth) -> bool:
    return memory.has_stacks and memory.sources[growth.source].category in _CONSTANT


def _finding(memory: RecordedMemory, growth: SourceGrowth) -> Finding:
    rate = rate_text(growth.bytes_per_step)
    ends = count_text(len(growth.bytes_at), "step end")
    culprit = _culprit(memory, growth)
    place = "" if culprit is None else place_text(culprit.file, culprit.line) or culprit.function
    if place:
        summary = fitting(f"Grows by {rate} at {place}, at each of {ends}.")
    else:
        summary = fitting(f"Grows by {rate} at each of {ends}; recorded without stacks.")
    blocks = count_text(growth.count_at[-1] - growth.count_at[0], "more block")
    return Finding(
        KIND,
        "warning",
        summary,
        {
            "slope_bytes_per_step": growth.bytes_per_step,
            "bytes_at_looks": list(growth.bytes_at),
            "counts_at_looks": list(growth.count_at),
            "grown_bytes": growth.bytes_at[-1] - growth.bytes_at[0],
            "unit": "step",
        },
        0.75 if len(growth.bytes_at) >= 2 * MIN_ENDS else 0.6,
        culprits=() if culprit is None else (culprit,),
        detail=f"{blocks} in {count_text(growth.steps, 'step')}; at the last "
        f"{size_text(growth.bytes_at[-1])}. Whether it ends, a short recording cannot tell.",
        subject=place,
        stage="suspected",
    )


def _culprit(memory: RecordedMemory, growth: SourceGrowth) -> Culprit | None:
    if not memory.has_stacks:
        return None
    source = memory.sources[growth.source]
    line = _LINE.search(f"{source.line} ")
    return Culprit(
        source.file,
        int(line[1]) if line else 0,
        source.line.partition(" ")[2] if line else source.label,
        bytes=growth.bytes_at[-1] - growth.bytes_at[0],
        bytes_per_step=growth.bytes_per_step,
    )
