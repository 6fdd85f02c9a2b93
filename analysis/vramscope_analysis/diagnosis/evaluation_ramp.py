"""Memory that builds up inside an evaluation, batch by batch, and goes when it is over.

It is seen in samples, between the exact ends of two steps: the kept level rises through the whole
stretch, and the floor is back where it was at the end of the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.floors import ALLOCATED, Floors
from vramscope_analysis.diagnosis.trend import kept_level
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.columns import Numbers
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

LEAST_SAMPLES: Final = 6
MANY_SAMPLES: Final = 12
"""With so many in it a single ramp of a phase is enough; else it takes two."""
LEAST_RAMP_BYTES: Final = 16 * MIB
_PARTS: Final = 4
_EVEN: Final = 0.3
_OF_TOP: Final = 0.5
"""The ramp makes up this share of the height above the floor."""
_TOP_AFTER: Final = 0.5
"""The top lies behind this share of the stretch: activations of a step peak earlier, and fall."""
_BACK: Final = 0.2
_LONG: Final = 5.0
"""A step that takes so many times as long as usual has something else in it."""
_MORE: Final = 1.5
_MOST_STRETCHES: Final = 32


@dataclass(frozen=True)
class EvaluationRamp:
    """What builds up in evaluations.

    Args:
        bytes: by how much, at most.
        top_bytes: the highest that was seen, or counted where the phase has a peak.
        steps: the steps that ended with one.
        name: of the phase, where it is known.
    """

    bytes: float
    top_bytes: float
    steps: tuple[int, ...]
    name: str


def evaluation_ramp(rank: RankEvidence, floors: Floors) -> EvaluationRamp | None:
    """The ramp that evaluations of a rank have in common; None if there is none.

    Args:
        rank: its samples and stretches.
        floors: the ends of its steps.
    """
    samples = rank.samples
    if len(floors) < _PARTS or len(samples) < LEAST_SAMPLES:
        return None
    allocated = samples.numbers(ALLOCATED)
    known = ~np.isnan(allocated)
    time_ns, allocated = samples.time_ns[known], allocated[known]
    ramps: list[tuple[float, float, int, str]] = []
    most = 0
    for row, start_ns, end_ns, name in _stretches(rank.stretches, floors):
        inside = slice(
            int(np.searchsorted(time_ns, start_ns)), int(np.searchsorted(time_ns, end_ns))
        )
        ramp = _ramp(allocated[inside], floors, row)
        if ramp is not None:
            ramps.append((ramp, float(allocated[inside].max()), int(floors.step[row]), name))
            most = max(most, inside.stop - inside.start)
    if len(ramps) < 2 and (most < MANY_SAMPLES or not ramps[-1:] or not ramps[-1][3]):
        return None
    return EvaluationRamp(
        max(ramp[0] for ramp in ramps),
        max(ramp[1] for ramp in ramps),
        tuple(ramp[2] for ramp in ramps),
        ramps[-1][3],
    )


def _stretches(stretches: tuple[Stretch, ...], floors: Floors) -> list[tuple[int, int, int, str]]:
    """Rows of steps with an evaluation in them, and from when until when it may have been."""
    found: dict[int, tuple[int, int, int, str]] = {}
    for row in _long_rows(floors):
        found[row] = (row, int(floors.time_ns[row - 1]), int(floors.time_ns[row]), "")
    for stretch in stretches[-_MOST_STRETCHES:]:
        if stretch.end_ns is None or stretch.name in ("train", "data_wait", "checkpoint"):
            continue
        row = int(np.searchsorted(floors.time_ns, stretch.end_ns))
        if 0 < row < len(floors):
            found[row] = (row, stretch.start_ns, stretch.end_ns, stretch.name)
    return sorted(found.values())[-_MOST_STRETCHES:]


def _long_rows(floors: Floors) -> list[int]:
    """Steps that took much longer, and allocated more: not those that the machine held up."""
    if floors.volume is None:
        return []
    took = np.diff(floors.time_ns)
    is_more = floors.volume[1:] > _MORE * np.median(floors.volume)
    return [int(row) + 1 for row in np.flatnonzero((took > _LONG * np.median(took)) & is_more)]


def _ramp(values: Numbers, floors: Floors, row: int) -> float | None:
    """By how much it builds up in one stretch; None if it does not."""
    if len(values) < LEAST_SAMPLES:
        return None
    top = int(np.argmax(values))
    base = float(floors.allocated[row - 1])
    if top < _TOP_AFTER * (len(values) - 1) or top < _PARTS:
        return None
    level = kept_level(values[: top + 1])
    edges = np.linspace(0, top, _PARTS + 1).round().astype(np.int64)
    rises = np.diff(level[edges])
    ramp = float(level[top] - level[0])
    height = float(values[top]) - base
    if ramp < max(LEAST_RAMP_BYTES, _OF_TOP * height) or rises.min() < _EVEN * np.median(rises):
        return None
    return ramp if floors.allocated[row] - base <= _BACK * ramp else None
