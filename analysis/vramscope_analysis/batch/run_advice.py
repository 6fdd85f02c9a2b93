"""One batch size for all ranks of a run: the fullest rank decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vramscope_analysis.batch.batch_advice import BatchAdvice, Confidence, Silence

_LEAST_FIRST: Final[tuple[Confidence, ...]] = ("low", "medium", "high")


@dataclass(frozen=True)
class KeptBatch:
    """Samples of a forward pass, and how many passes keep the samples of a step as they are."""

    batch: int
    passes: int


@dataclass(frozen=True)
class RunAdvice:
    """What is advised for a run.

    Args:
        ranks: the advice of each rank that tells something, by number.
        silent: why the others do not, by rank.
        world_size: how many ranks there should be.
    """

    ranks: tuple[BatchAdvice, ...]
    silent: Mapping[int, Silence] = field(default_factory=dict[int, Silence])
    world_size: int = 1

    @property
    def deciding(self) -> BatchAdvice:
        """The rank with the least room."""
        return min(self.ranks, key=lambda each: (each.batch, each.low, each.rank))

    @property
    def batch(self) -> int:
        """Samples of a forward pass of each rank."""
        return self.deciding.batch

    @property
    def low(self) -> int:
        """What is surely possible."""
        return min(each.low for each in self.ranks)

    @property
    def high(self) -> int | None:
        """What is surely not exceeded; None is not known."""
        known = [each.high for each in self.ranks if each.high is not None]
        return min(known) if known else None

    @property
    def current(self) -> int | None:
        """The largest present size of any rank; None is not known."""
        return max((each.current for each in self.ranks if each.current is not None), default=None)

    @property
    def passes(self) -> int | None:
        """Forward passes of a step; None is not known, or not the same on all ranks."""
        found = {each.passes for each in self.ranks}
        return found.pop() if len(found) == 1 else None

    @property
    def gain(self) -> int | None:
        """How many samples more all ranks together take at a time."""
        return None if self.current is None else (self.batch - self.current) * self.world_size

    @property
    def confidence(self) -> Confidence:
        """The lowest of the ranks; low while some of them tell nothing."""
        if self.silent or len(self.ranks) < self.world_size:
            return "low"
        found = {each.confidence for each in self.ranks}
        return next(level for level in _LEAST_FIRST if level in found)

    @property
    def keeping(self) -> KeptBatch | None:
        """The largest size up to the advised one that other passes make the same step of."""
        if self.current is None or self.passes is None:
            return None
        samples = self.current * self.passes
        least = -(-samples // self.batch)
        passes = next((n for n in range(least, samples + 1) if samples % n == 0), None)
        if passes is None or samples // passes == self.current:
            return None
        return KeptBatch(samples // passes, passes)


def run_advice(found: Mapping[int, BatchAdvice | Silence], world_size: int) -> RunAdvice | Silence:
    """Put together what the ranks tell.

    Args:
        found: by rank.
        world_size: how many ranks there should be.
    """
    told: list[BatchAdvice] = []
    silent: dict[int, Silence] = {}
    for rank, each in found.items():
        if isinstance(each, BatchAdvice):
            told.append(each)
        else:
            silent[rank] = each
    if told:
        return RunAdvice(tuple(told), silent, world_size)
    for reason in silent.values():
        return reason
    return "no_steps"
