"""The largest batch of one rank that fits, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from vramscope_analysis.batch.batch_steps import BatchSteps, Reason, batch_steps
from vramscope_analysis.batch.peak_model import PeakModel, peak_model
from vramscope_analysis.batch.room import HEAD_ROOM, Room, room
from vramscope_analysis.evidence.run_evidence import RankEvidence

Confidence = Literal["high", "medium", "low"]
Silence = Reason | Literal["no_limit", "flat", "too_small"]

_HIGH: Final = 0.85
_MEDIUM: Final = 0.75
_GROWING: Final = 0.01
"""Of the limit: by so much may the ends of steps rise within those that are looked at."""
_FEWEST_TO_GROW: Final = 30
_FEWEST_OF_LENGTHS: Final = 30


@dataclass(frozen=True)
class BatchAdvice:
    """What is advised for one rank.

    Args:
        rank: its number.
        batch: samples of a forward pass that fit.
        low, high: what the true largest is surely not below, and surely not above; ``high`` is
            None where that is not known.
        current: the size of the newest step; None is not known.
        passes: forward passes of a step; None is not known.
        model: what is known of the peak.
        room: what the peak may take.
        steps: how many steps it rests on.
        grows_bytes: by how much memory rose within these steps; 0 is not at all.
        is_replayed: what segments waste comes from a replay, not from a rule of thumb.
        retries: cache flushes in that replay.
        ran_out_at: the smallest size with which memory ran out when it was tried; None is none.
    """

    rank: int
    batch: int
    low: int
    high: int | None
    current: int | None
    passes: int | None
    model: PeakModel
    room: Room
    steps: int
    grows_bytes: int = 0
    is_replayed: bool = False
    retries: int = 0
    ran_out_at: int | None = None

    @property
    def peak_bytes(self) -> int:
        """The peak that a step with this size surely stays below."""
        return int(self.model.at_most(self.batch))

    @property
    def confidence(self) -> Confidence:
        """How close the advice is to what could be at most."""
        share = 0.0 if not self.high else self.batch / self.high
        if self.grows_bytes or share < _MEDIUM:
            return "low"
        is_long_tail = self.model.is_varying and self.steps < _FEWEST_OF_LENGTHS
        is_sure = self.is_replayed and share >= _HIGH and not is_long_tail
        return "high" if is_sure else "medium"


def batch_advice(rank: RankEvidence, head_room: float = HEAD_ROOM) -> BatchAdvice | Silence:
    """Advise one rank, or say why there is nothing to say.

    Args:
        rank: the process.
        head_room: part of the limit that is to stay free.
    """
    steps = batch_steps(rank)
    if steps.reason is not None:
        return steps.reason
    space = room(rank, head_room)
    if space is None:
        return "no_limit"
    model = peak_model(steps)
    if model.sample_bytes < 1:
        return "flat"
    batch = model.largest_below(space.for_tensors_bytes)
    if batch < 1:
        return "too_small"
    return BatchAdvice(
        rank.rank,
        batch,
        max(model.largest_below(space.at_worst_bytes), 1),
        model.largest_above(space.allowed_bytes),
        steps.current,
        steps.passes,
        model,
        space,
        len(steps),
        _grows(steps, space),
    )


def below_failed(advice: BatchAdvice, ran_out_at: int) -> BatchAdvice:
    """The advice with a size that memory ran out with: whatever was computed, it does not fit.

    Args:
        advice: as computed.
        ran_out_at: samples of a forward pass.
    """
    most = max(ran_out_at - 1, 1)
    return replace(
        advice,
        batch=min(advice.batch, most),
        low=min(advice.low, most),
        high=most if advice.high is None else min(advice.high, most),
        ran_out_at=ran_out_at,
    )


def _grows(steps: BatchSteps, space: Room) -> int:
    """By how much the ends of steps of one size have risen: then the peak will too."""
    ends = steps.floors[steps.sizes == steps.sizes[-1]]
    ends = ends[np.isfinite(ends)]
    if len(ends) < _FEWEST_TO_GROW:
        return 0
    third = len(ends) // 3
    risen = int(np.median(ends[-third:]) - np.median(ends[:third]))
    return risen if risen > _GROWING * space.limit_bytes else 0
