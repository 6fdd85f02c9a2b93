"""Memory that no step works with, as an agent's report tells it: who holds it, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.growth_group import main_holder
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.lasting_rise import (
    LASTING_ROWS,
    LEAST_RISE_BYTES,
    LastingRise,
    last_change_step,
    lasting_rises,
)
from vramscope_analysis.evidence.growth_report import GrowthGroup, GrowthReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

_OF_RISE: Final = 0.25
"""A holder is behind a rise when it holds this share of it."""
_SETTLED_STEPS: Final = 64
_OF_FLOOR: Final = 0.1
_STILL_THERE: Final = 0.5
_MOST: Final = 3


@dataclass(frozen=True)
class HeldMemory:
    """Memory that was kept once.

    Args:
        group: what, and by whom.
        rise: with which it came; None where something else took its place at the same moment.
        since_step: when it came, or was no longer worked with.
    """

    group: GrowthGroup
    rise: LastingRise | None
    since_step: int

    @property
    def is_exception(self) -> bool:
        """Whether an exception holds it."""
        holder = main_holder(self.group)
        return holder is not None and holder.kind == "exception"


def held_memory(rank: RankEvidence) -> list[HeldMemory]:
    """What is held and not worked with, the largest first.

    Args:
        rank: what is known of it, with its agent's report.
    """
    report, reading = rank.growth, growth_reading(rank)
    floors = reading.floors
    if report is None or not report.held or not report.steps or not len(floors):
        return []
    groups = [
        group
        for group in by_root(report.held)
        # What is written to is worked with: an average of the weights, a buffer.
        if not group.is_written and _is_there(group, report, floors)
    ]
    until = report.steps[-1]
    if reading.growth is not None and reading.is_suspicious:
        until = min(until, reading.growth.since_step)  # told by the finding about that growth
    rises = [each for each in lasting_rises(floors) if each.step < until]
    newest = rises[-1].step if rises else 0
    has_settled = int(floors.step[-1]) >= newest + _SETTLED_STEPS
    found: dict[int, HeldMemory] = {}
    for rise in reversed(rises):
        if rise.is_workspace:
            continue
        for place, group in enumerate(groups):
            held = HeldMemory(group, rise, rise.step)
            if not has_settled and not held.is_exception:
                continue  # the next rise may come, and make it a staircase
            if group.bytes >= max(_OF_RISE * rise.bytes, LEAST_RISE_BYTES / 2):
                found.setdefault(place, held)
    changed = last_change_step(floors)
    if changed is not None and changed < until:
        floor = float(floors.allocated[-1])
        for place, group in enumerate(groups):
            # Of plain tensors it is not known whether a step works with them; of a model it is.
            if group.category and group.bytes >= max(LEAST_RISE_BYTES, _OF_FLOOR * floor):
                found.setdefault(place, HeldMemory(group, None, changed))
    return sorted(found.values(), key=lambda held: -held.group.bytes)[:_MOST]


def by_root(held: Sequence[GrowthGroup]) -> list[GrowthGroup]:
    """The groups put together by the name that holds them: a dict is one, not each of its keys.

    Args:
        held: as a report has them.
    """
    by_root: dict[tuple[str, str, str], list[GrowthGroup]] = {}
    for place, group in enumerate(held):
        holder = main_holder(group)
        root = holder.chain[0] if holder is not None and holder.chain else str(place)
        kind = "" if holder is None else holder.kind
        by_root.setdefault((kind, root, group.category), []).append(group)
    return [_together(groups) for groups in by_root.values()]


def _together(groups: Sequence[GrowthGroup]) -> GrowthGroup:
    holder = main_holder(groups[0])
    if len(groups) == 1 or holder is None:
        return groups[0]
    chains = [each.chain for group in groups if (each := main_holder(group)) is not None]
    alike = takewhile(lambda words: len(set(words)) == 1, zip(*chains, strict=False))
    common = tuple(words[0] for words in alike)
    return replace(
        max(groups, key=lambda group: group.bytes),
        bytes=sum(group.bytes for group in groups),
        count=sum(group.count for group in groups),
        holders=(replace(holder, chain=common or holder.chain[:1]),),
        is_written=any(group.is_written for group in groups),
    )


def step_to_ask_about(rank: RankEvidence) -> int | None:
    """The newest moment after which somebody may hold what is no longer needed; None is none."""
    floors = growth_reading(rank).floors
    if len(floors) < 2 * LASTING_ROWS:
        return None
    rises = [rise.step for rise in lasting_rises(floors) if not rise.is_workspace]
    changed = last_change_step(floors)
    moments = [*rises, *([] if changed is None else [changed])]
    return max(moments, default=None)


def _is_there(group: GrowthGroup, report: GrowthReport, floors: Floors) -> bool:
    """Whether memory has not fallen since the report by what would be this."""
    row = int(np.searchsorted(floors.step, report.steps[-1]))
    if row >= len(floors):
        return True
    fallen = float(floors.allocated[row] - floors.allocated[-1])
    return fallen < _STILL_THERE * group.bytes
