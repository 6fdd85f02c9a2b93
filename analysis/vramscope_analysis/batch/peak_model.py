"""Between which bounds the peak of a step lies at a batch size that was not tried.

At each moment of a step memory is something that does not depend on the batch plus something in
proportion to it. The peak is the highest moment, so against the batch it is a line that only bends
upwards. From this two bounds follow beyond the largest size that was tried, whatever the job does:

- *at most*: everything beyond what surely does not depend on the batch grows in proportion;
- *at least*: the peak goes on as from the second largest size to the largest.

They meet as sizes come closer to the one that is asked for. What grows faster than in proportion is
told by the sizes that were tried, and carried on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.batch.batch_steps import BatchSteps
from vramscope_analysis.evidence.columns import Numbers

VARYING: Final = 1.02
"""Samples are not alike where the highest step of a size needed so much more than the median."""
MOST_BATCH: Final = 1 << 24

_MANY_STEPS: Final = 50
_SMALLER: Final = 0.8
"""Sizes closer to each other tell no slope."""
_STEEPER: Final = 1.02
_MOST_EXPONENT: Final = 1.0


@dataclass(frozen=True)
class PeakModel:
    """The peak against the batch size.

    Args:
        fixed_bytes: what surely does not depend on the batch.
        gradients_bytes: gradients that come during a step, which do not either but need not be
            there at the peak.
        state_bytes: part of ``fixed_bytes`` that the optimizer's state is.
        sizes: those that were tried, from the smallest.
        highest_bytes: the most that each needed beyond ``fixed_bytes``.
        sample_bytes: what one sample more needs at most, beyond the largest size.
        exponent: by which a sample's need grows beyond the largest size; 0 is not at all.
        slope_bytes: what one sample more needs at least; 0 is not known.
        spread: how much more the highest step of a size needed than the median one.
        steps: how many steps tell of the largest size.
    """

    fixed_bytes: int
    gradients_bytes: int
    state_bytes: int
    sizes: tuple[int, ...]
    highest_bytes: tuple[float, ...]
    sample_bytes: float
    exponent: float
    slope_bytes: float
    spread: float
    steps: int

    @property
    def is_varying(self) -> bool:
        """Whether steps with as many samples needed more and less, as with texts of any length."""
        return self.spread > VARYING

    @property
    def largest(self) -> int:
        """The largest size that was tried."""
        return self.sizes[-1]

    def at_most(self, batch: int) -> float:
        """The peak that a batch of this size surely stays below."""
        if batch >= self.largest:
            grown = float((batch / self.largest) ** self.exponent)
            return self.fixed_bytes + self.sample_bytes * batch * grown
        if batch > self.sizes[0]:  # a chord lies above what bends upwards
            return self.fixed_bytes + float(np.interp(batch, self.sizes, self.highest_bytes))
        constant = min(self.gradients_bytes, self.highest_bytes[0])
        moving = (self.highest_bytes[0] - constant) * batch / self.sizes[0]
        return self.fixed_bytes + constant + moving

    def at_least(self, batch: int) -> float:
        """The peak that a batch of this size surely reaches."""
        if batch < self.largest:
            return self.at_most(batch)
        highest = self.highest_bytes[-1] + self.slope_bytes * (batch - self.largest)
        return self.fixed_bytes + highest

    def largest_below(self, room_bytes: float) -> int:
        """The largest batch that surely stays below so many bytes; 0 is none."""
        return last_that(lambda batch: self.at_most(batch) <= room_bytes)

    def largest_above(self, room_bytes: float) -> int | None:
        """The largest batch that might; None is not known."""
        if not self.slope_bytes and self.at_least(self.largest) <= room_bytes:
            return None
        return last_that(lambda batch: self.at_least(batch) <= room_bytes)


def peak_model(steps: BatchSteps) -> PeakModel:
    """Read the bounds off the steps.

    Args:
        steps: of which at least one size was seen often enough.
    """
    sizes = np.array(steps.tried)
    groups = [steps.extra[steps.sizes == size] for size in sizes]
    highest = np.array([group.max() for group in groups])
    typical = np.array([float(np.median(group)) for group in groups])
    spread = _spread(groups, typical)
    gradients = float(steps.gradients[-1])
    exponent = 0.0 if spread > VARYING else _exponent(sizes, typical)
    sample_bytes = highest[-1] / sizes[-1]
    if spread > VARYING and len(groups[-1]) < _MANY_STEPS:
        # The largest size may not have met the longest samples yet, which others have.
        longest = max(float(each) for each in highest / sizes)
        sample_bytes = max(sample_bytes, min(typical[-1] / sizes[-1] * spread, longest))
    return PeakModel(
        fixed_bytes=int(steps.fixed[-1]),
        gradients_bytes=int(gradients),
        state_bytes=int(steps.state[-1]),
        sizes=tuple(steps.tried),
        highest_bytes=tuple(highest.tolist()),
        sample_bytes=float(sample_bytes),
        exponent=exponent,
        slope_bytes=_slope(steps, sizes, typical, gradients),
        spread=spread,
        steps=len(groups[-1]),
    )


def _spread(groups: list[Numbers], typical: Numbers) -> float:
    """Of the size that most steps tell of."""
    at = int(np.argmax([len(group) for group in groups]))
    return float(groups[at].max() / typical[at]) if typical[at] > 0 else 1.0


def _exponent(sizes: Numbers, typical: Numbers) -> float:
    """How much faster than in proportion memory grows with the batch."""
    smaller = np.flatnonzero((sizes <= _SMALLER * sizes[-1]) & (typical > 0))
    if not len(smaller):
        return 0.0
    each = typical / sizes
    ratio = each[-1] / each[smaller[-1]]
    if ratio <= _STEEPER:
        return 0.0
    return float(min(np.log(ratio) / np.log(sizes[-1] / sizes[smaller[-1]]), _MOST_EXPONENT))


def _slope(steps: BatchSteps, sizes: Numbers, typical: Numbers, gradients: float) -> float:
    smaller = np.flatnonzero(sizes <= _SMALLER * sizes[-1])
    if len(smaller):
        at = smaller[-1]
        return float(max(typical[-1] - typical[at], 0) / (sizes[-1] - sizes[at]))
    if steps.is_optimizer[steps.sizes == sizes[-1]].any():
        return 0.0  # of what depends on the batch nothing is known but that it is lower
    return float(max(typical[-1] - gradients, 0) / sizes[-1])


def last_that(fits: Callable[[int], bool]) -> int:
    """The largest batch that fits, given that all smaller ones do; 0 is none."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= MOST_BATCH and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
