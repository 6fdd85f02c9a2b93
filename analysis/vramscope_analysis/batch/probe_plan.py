"""A few steps with another batch size that would tell more: which size, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vramscope_analysis.batch.run_advice import RunAdvice

PROBE_STEPS: Final = 4
"""The first has what the step before left, three count."""
_MOST: Final = 2
"""So many times the present size at most: a loader and a learning rate want to follow."""
_LEAST: Final = 1.25
"""Sizes closer to each other tell no slope."""


@dataclass(frozen=True)
class ProbePlan:
    """Another batch size for a few steps, then back.

    Args:
        batch, passes: samples of a forward pass and passes of a step; passes None are left.
        back, back_passes: what it is set back to.
        changes_global_batch: whether these steps are of another number of samples.
        steps: how many.
    """

    batch: int
    passes: int | None
    back: int
    back_passes: int | None
    changes_global_batch: bool
    steps: int = PROBE_STEPS

    @property
    def params(self) -> dict[str, object]:
        """Parameters of ``set_batch_size`` for the way there."""
        return _params(self.batch, self.passes, change=self.changes_global_batch)

    @property
    def back_params(self) -> dict[str, object]:
        """The same for the way back."""
        return _params(self.back, self.back_passes, change=self.changes_global_batch)

    @property
    def costs(self) -> list[tuple[str, str]]:
        """What it costs, as pairs of what and how much."""
        learns = (
            "another number of samples: learning rates and schedules stay as they are"
            if self.changes_global_batch
            else "as many samples as before, in other parts"
        )
        return [
            ("Steps", f"{self.steps} with {self.batch} samples in place of {self.back}"),
            ("Each learns from", learns),
            (
                "Memory",
                "by what is known it stays below the limit; what is taken stays in the cache",
            ),
            ("Out of memory", "in the first of them, the old size comes back"),
            ("Compiled code", "is compiled again for another size"),
        ]


def probe_plan(advice: RunAdvice) -> ProbePlan | None:
    """The size that tells most without risk; None where more steps would not tell more.

    It is one that surely fits, and larger: the closer to what is advised, the less is left open.
    """
    current, high = advice.current, advice.high
    if current is None or advice.confidence == "high" or advice.deciding.grows_bytes:
        return None
    if high is not None and high <= current:
        return None
    batch = min(advice.low, _MOST * current)
    if batch < _LEAST * current:
        return None
    passes = advice.passes
    if passes is not None and passes > 1:
        samples = current * passes
        for fewer in range(passes - 1, 0, -1):
            size = samples // fewer
            if samples % fewer == 0 and _LEAST * current <= size <= batch:
                return ProbePlan(size, fewer, current, passes, changes_global_batch=False)
    return ProbePlan(batch, passes, current, passes, changes_global_batch=True)


def _params(batch: int, passes: int | None, *, change: bool) -> dict[str, object]:
    found: dict[str, object] = {"batch_size": batch}
    if passes is not None:
        found["accumulation"] = passes
    if change:
        found["change_global_batch"] = True
    return found
