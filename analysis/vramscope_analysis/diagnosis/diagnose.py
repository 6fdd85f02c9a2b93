"""Everything that is wrong with a run: all judges, asked one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from vramscope_analysis.diagnosis.cycle_growth import cycle_growth
from vramscope_analysis.diagnosis.delayed_reuse import delayed_reuse
from vramscope_analysis.diagnosis.finding import SEVERITIES, Finding
from vramscope_analysis.diagnosis.first_step_state import first_step_state
from vramscope_analysis.diagnosis.fragmentation import fragmentation
from vramscope_analysis.diagnosis.host_full import host_full
from vramscope_analysis.diagnosis.host_growth import host_growth
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.near_oom import near_oom
from vramscope_analysis.diagnosis.non_torch_memory import non_torch_memory
from vramscope_analysis.diagnosis.oom import oom
from vramscope_analysis.diagnosis.other_process import other_process
from vramscope_analysis.diagnosis.oversized_cache import oversized_cache
from vramscope_analysis.diagnosis.pinned_growth import pinned_growth
from vramscope_analysis.diagnosis.rank_imbalance import rank_imbalance
from vramscope_analysis.diagnosis.recording_overhead import recording_overhead
from vramscope_analysis.diagnosis.retained_exception import retained_exception
from vramscope_analysis.diagnosis.retention import retention
from vramscope_analysis.diagnosis.settings_advice import settings_conflict
from vramscope_analysis.diagnosis.thrash import thrash
from vramscope_analysis.diagnosis.tight import tight
from vramscope_analysis.diagnosis.workspace import workspace
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence


@dataclass(frozen=True)
class RankJudge:
    """A judge of one rank at a time."""

    judge: Callable[[RankEvidence], list[Finding]]

    @property
    def name(self) -> str:
        """For when it fails."""
        return _name(self.judge)

    def questions(self, run: RunEvidence) -> Iterator[Callable[[], list[Finding]]]:
        """One question for each rank; the answer names it."""
        for rank in run.ranks:
            yield partial(self._ask, rank)

    def _ask(self, rank: RankEvidence) -> list[Finding]:
        return [
            finding if finding.ranks else replace(finding, ranks=(rank.rank,))
            for finding in self.judge(rank)
        ]


@dataclass(frozen=True)
class RunJudge:
    """A judge of all ranks together."""

    judge: Callable[[RunEvidence], list[Finding]]

    @property
    def name(self) -> str:
        """For when it fails."""
        return _name(self.judge)

    def questions(self, run: RunEvidence) -> Iterator[Callable[[], list[Finding]]]:
        """One question."""
        yield partial(self.judge, run)


def _name(judge: object) -> str:
    return getattr(judge, "__name__", type(judge).__name__)


JUDGES: tuple[RankJudge | RunJudge, ...] = (
    RankJudge(oom),
    RankJudge(leak),
    RankJudge(cycle_growth),
    RankJudge(retained_exception),
    RankJudge(retention),
    RunJudge(workspace),
    RankJudge(near_oom),
    RankJudge(tight),
    RankJudge(thrash),
    RankJudge(fragmentation),
    RankJudge(settings_conflict),
    RankJudge(oversized_cache),
    RankJudge(delayed_reuse),
    RankJudge(non_torch_memory),
    RunJudge(other_process),
    RunJudge(host_growth),
    RunJudge(host_full),
    RankJudge(pinned_growth),
    RankJudge(first_step_state),
    RankJudge(recording_overhead),
    RunJudge(rank_imbalance),
)
"""One line a judge."""


def diagnose(run: RunEvidence) -> list[Finding]:
    """What is wrong with a run now, the most urgent first.

    A finding of one rank names it in ``ranks``.

    Args:
        run: what is known of it; nothing is remembered between two calls.
    """
    findings = [finding for judge in JUDGES for ask in judge.questions(run) for finding in ask()]
    return sorted(findings, key=_urgency)


def _urgency(finding: Finding) -> tuple[int, bool, float]:
    return (
        -SEVERITIES.index(finding.severity),
        finding.stage == "suspected",
        -finding.confidence,
    )
