"""One time out of memory with everything that follows from its report alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.rounding import round_size, segment_size
from vramscope_analysis.diagnosis.oom_demand import Demand, steps_before
from vramscope_analysis.diagnosis.oom_place import Place, is_search_for_batch_size, place_of_oom
from vramscope_analysis.diagnosis.oom_shortage import Shortage
from vramscope_analysis.diagnosis.settings_advice import read_settings
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch
from vramscope_analysis.evidence.settings_trial import SettingsTrial

_TRAINING: Final = ("", "train", "data_wait")


@dataclass(frozen=True, eq=False)
class OomCase:
    """What the causes and remedies are judged from.

    Args:
        report: what was written down.
        shortage: what was missing.
        demand: what the steps before needed.
        place: the line that asked.
        rank: what else is known of the process.
        trials: what a replay under other settings gave.
        is_search: somebody was trying batch sizes until one fits.
    """

    report: OomReport
    shortage: Shortage
    demand: Demand
    place: Place | None
    rank: RankEvidence | None
    trials: tuple[SettingsTrial, ...]
    is_search: bool

    @classmethod
    def of(
        cls,
        report: OomReport,
        rank: RankEvidence | None = None,
        trials: Sequence[SettingsTrial] = (),
    ) -> OomCase:
        """Put together what follows from a report."""
        told = tuple(trials) or (() if rank is None else rank.trials)
        return cls(
            report=report,
            shortage=Shortage.of(report),
            demand=Demand.of(report, rank),
            place=place_of_oom(report),
            rank=rank,
            trials=told,
            is_search=is_search_for_batch_size(report),
        )

    @property
    def demand_rows(self) -> Rows:
        """Rows of the steps before the failure."""
        return steps_before(self.report, self.rank)

    @property
    def phase(self) -> str:
        """The phase beside training that it happened in; empty while training."""
        return "" if self.report.phase in _TRAINING else self.report.phase

    @property
    def moving_bytes(self) -> int | None:
        """What was needed beyond the constant part: activations, gradients, workspaces."""
        needed, constant = self.shortage.needed_bytes, self.demand.constant_bytes
        return None if needed is None or constant is None else max(needed - constant, 0)

    @property
    def scaling_bytes(self) -> int | None:
        """Of that, what is as large as the batch at least: without the gradients.

        A peak in the backward pass or the optimizer has gradients in it, which do not depend on
        the batch. In the forward pass there are none that were not there before.
        """
        moving = self.moving_bytes
        if moving is None or self.report.part == "forward":
            return moving
        return max(moving - (self.demand.gradients_bytes or 0), 0)

    @property
    def passed_stretches(self) -> list[Stretch]:
        """Earlier stretches of the same phase that came to their end."""
        if self.rank is None or not self.phase:
            return []
        before = self.report.time_ns
        return [
            stretch
            for stretch in self.rank.stretches
            if stretch.name == self.phase and stretch.end_ns is not None and stretch.end_ns < before
        ]

    @property
    def new_batch(self) -> tuple[int, int] | None:
        """Batch size before and after a command, if this was the first step after it."""
        sizes = [
            self.report.new_sizes.get(name, {}).get("batch_size", 0) for name in ("before", "after")
        ]
        return (sizes[0], sizes[1]) if all(sizes) else None

    def is_of_same_kind(self, size_bytes: int) -> bool:
        """Whether a request of this size gets a segment as large as the one that was refused."""
        settings = read_settings(self.settings) or AllocatorSettings()
        segment = segment_size(round_size(size_bytes, settings), settings)
        return segment == self.shortage.segment_bytes

    @property
    def settings(self) -> str | None:
        """The allocator's settings; None is not known."""
        if self.report.settings is not None or self.rank is None:
            return self.report.settings
        return self.rank.settings
