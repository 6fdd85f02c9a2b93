"""Optimizer steps of a recorded run, told by the scopes that PyTorch's optimizers name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

STEP_PREFIX: Final = "Optimizer.step#"
"""How ``torch.optim.Optimizer.profile_hook_step`` names the scope of a step."""


@dataclass(frozen=True)
class Annotation:
    """One edge of a named scope (``external_annotations``).

    Args:
        name: as the scope is called.
        stage: ``START`` or ``END``.
        time_us: microseconds since the epoch.
    """

    name: str
    stage: str
    time_us: int


class Steps:
    """Optimizer steps by time. Step i lasts from the end of ``Optimizer.step`` i-1 to that of i.

    Several optimizers that take turns make one step together: the last of them ends it.
    """

    def __init__(self, ends_us: list[int]) -> None:
        self.ends_us = ends_us

    @classmethod
    def from_annotations(cls, annotations: Iterable[Annotation]) -> Steps:
        """Steps of a recording; none without annotations (before torch 2.5, or no optimizer)."""
        ends = [a for a in annotations if a.stage == "END" and a.name.startswith(STEP_PREFIX)]
        names = list(dict.fromkeys(annotation.name for annotation in ends))
        return cls([annotation.time_us for annotation in ends if annotation.name == names[-1]])

    def __len__(self) -> int:
        return len(self.ends_us)

    def at(self, time_us: int) -> int | None:
        """The step that a moment lies in, counted from 0; None if no steps are known."""
        return bisect_right(self.ends_us, time_us) if self.ends_us else None
