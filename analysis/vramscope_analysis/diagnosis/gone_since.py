"""Groups of a growth report that have gone since: what grew while the agent looked, and came back.

A list that is filled anew in each epoch may grow faster than the leak beside it. Had it gone on as
it did between the looks, memory would have risen by more than it has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.growth_group import growth_bytes
from vramscope_analysis.diagnosis.trend import kept_level
from vramscope_analysis.evidence.growth_report import GrowthGroup, GrowthReport

_LONG_AFTER: Final = 4
"""So many times as long as the looks took has to have passed since the first."""
_RECENT: Final = 4
_OF_PACE: Final = 0.4


def without_gone(report: GrowthReport, floors: Floors) -> GrowthReport:
    """The report without what it would have been too much of by now.

    Args:
        report: of an agent.
        floors: the ends of steps until now.
    """
    if len(report.steps) < 2 or not len(floors):
        return report
    span, since = report.steps[-1] - report.steps[0], int(floors.step[-1]) - report.steps[0]
    first = int(np.searchsorted(floors.step, report.steps[0]))
    if span <= 0 or since < _LONG_AFTER * span or first >= len(floors):
        return report
    # What is there at this moment may be on its way back as well.
    recent = int(np.searchsorted(floors.step, int(floors.step[-1]) - since // _RECENT))
    level = kept_level(floors.allocated)
    risen, steps = float(level[recent] - level[first]), int(floors.step[recent]) - report.steps[0]
    gone = [
        group for group in report.groups if risen < _OF_PACE * growth_bytes(group) / span * steps
    ]
    if not gone:
        return report
    return replace(
        report,
        groups=tuple(group for group in report.groups if group not in gone),
        live_bytes_at_looks=tuple(
            live - sum(_at(group, look) for group in gone)
            for look, live in enumerate(report.live_bytes_at_looks)
        ),
    )


def _at(group: GrowthGroup, look: int) -> int:
    return group.bytes_at_looks[look] if look < len(group.bytes_at_looks) else 0
