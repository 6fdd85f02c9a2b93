"""The finding ``retention`` of a cuBLAS workspace: it comes once a stream, and is no leak.

Its size alone says little. It is taken for one when the agent has looked since, and no tensor that
somebody holds is as large; and when nothing grows.
"""

from __future__ import annotations

from typing import Final

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.lasting_rise import LastingRise, lasting_rises
from vramscope_analysis.diagnosis.words import count_text, size_text
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

KIND: Final = "retention"
SUBJECT: Final = "cuBLAS workspace"
_MOST: Final = 3
"""Streams that multiply matrices are few; what comes more often is something else."""
_OF_RISE: Final = 0.25


def workspace(run: RunEvidence) -> list[Finding]:
    """Judge which rises were workspaces; the allocator's model, which emulates, has none.

    Args:
        run: all of its ranks.
    """
    if run.emulated:
        return []
    return [finding for rank in run.ranks for finding in _of_rank(rank)]


def _of_rank(rank: RankEvidence) -> list[Finding]:
    reading = growth_reading(rank)
    report = rank.growth
    if report is None or reading.growth is not None or not report.complete:
        return []
    rises = [rise for rise in lasting_rises(reading.floors) if rise.is_workspace]
    if not 0 < len(rises) <= _MOST or not all(_is_unheld(rise, report) for rise in rises):
        return []
    return [_finding(rises, rank.rank)]


def _is_unheld(rise: LastingRise, report: GrowthReport) -> bool:
    """Whether the agent looked after it, and knows of nobody who holds as much."""
    if not report.steps or report.steps[-1] <= rise.step:
        return False
    return all(group.bytes < _OF_RISE * rise.bytes for group in (*report.held, *report.groups))


def _finding(rises: list[LastingRise], rank: int) -> Finding:
    total = int(sum(rise.bytes for rise in rises))
    steps = ", ".join(count_text(rise.step) for rise in rises)
    word = "workspace" if len(rises) == 1 else "workspaces"
    return Finding(
        KIND,
        "info",
        f"{size_text(total)} came at step {steps}: {len(rises)} cuBLAS {word}, kept for reuse.",
        {"since_step": rises[0].step, "held_bytes": total, "title": SUBJECT},
        0.7,
        remedies=(
            Remedy(
                "Leave it",
                "PyTorch keeps one for each handle and stream that multiplies matrices; it does "
                "not grow, and empty_cache does not free it.",
            ),
        ),
        detail="One for each stream that multiplies matrices. It is no leak.",
        subject=SUBJECT,
        ranks=(rank,),
        since_step=rises[0].step,
    )
