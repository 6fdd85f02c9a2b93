"""The finding ``recording_overhead``: recording every allocation makes the steps slower.

PyTorch's memory history costs time in every allocation, most with stacks of C++ or of frees. It is
for a window of some steps; jobs forget to switch it off.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.words import count_text, duration_text, fitting, share_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "recording_overhead"
COLUMN: Final = "step.recording"
OURS: Final = 1
THE_JOBS: Final = 2
WARM_UP_STEPS: Final = 20
LONG_STEPS: Final = 200
"""A window is shorter than this; whoever records for longer has forgotten it."""
OURS_LONG_STEPS: Final = 1000
"""Ours are bounded, and say themselves what they cost."""
MIN_STEPS: Final = 50
SLOWER_SHARE: Final = 0.05
SAMPLED_STEPS: Final = 200


def recording_overhead(rank: RankEvidence) -> list[Finding]:
    """Judge a recording that goes on: for how long, and what it costs where that is known."""
    rows = rank.steps
    who = rows.numbers(COLUMN)
    if rows.number is None or not len(who) or who[-1] not in (OURS, THE_JOBS):
        return []
    others = np.flatnonzero(who != who[-1])
    since = int(others[-1]) + 1 if len(others) else 0
    steps = int(rows.number[-1] - rows.number[since]) + 1
    slower = _slower(rank, since)
    is_slow = slower is not None and slower[0] >= SLOWER_SHARE
    enough = OURS_LONG_STEPS if who[-1] == OURS else MIN_STEPS if is_slow else LONG_STEPS
    if steps < enough:
        return []
    whose = "the job" if who[-1] == THE_JOBS else "vramscope"
    first = int(rows.number[since])
    cost = f"; steps take {share_text(slower[0])} longer" if is_slow and slower is not None else ""
    evidence: dict[str, Any] = {
        "series": "step.duration_us",
        "since_step": first,
        "steps": steps,
        "slower_share": None if slower is None else round(slower[0], 4),
        "slower_us_per_step": None if slower is None else round(slower[1]),
    }
    return [
        Finding(
            KIND,
            "warning" if is_slow else "info",
            fitting(
                f"Memory history is recorded by {whose} for {count_text(steps, 'step')}{cost}."
            ),
            evidence,
            0.85 if is_slow else 0.7,
            remedies=(_remedy(whose),),
            detail=_detail(slower),
            subject=whose,
            since_step=first,
        )
    ]


def _slower(rank: RankEvidence, since: int) -> tuple[float, float] | None:
    """By what part, and by how many us, steps are slower than those before; None is not known."""
    rows = rank.steps
    duration, who = rows.numbers("step.duration_us"), rows.numbers(COLUMN)
    before = slice(max(WARM_UP_STEPS, since - SAMPLED_STEPS), since)
    plain = duration[before][who[before] == 0]
    recorded = duration[since + 1 :][-SAMPLED_STEPS:]
    plain, recorded = plain[np.isfinite(plain)], recorded[np.isfinite(recorded)]
    if len(plain) < MIN_STEPS or len(recorded) < MIN_STEPS:
        return None
    usual, now = float(np.median(plain)), float(np.median(recorded))
    # Steps of a job differ anyway: what is within their usual spread is no cost of recording.
    spread = float(np.percentile(plain, 90)) - usual
    if usual <= 0 or now - usual <= spread:
        return 0.0, 0.0
    return (now - usual) / usual, now - usual


def _detail(slower: tuple[float, float] | None) -> str:
    if slower is None:
        return "What it costs is not known: no steps without it were seen."
    if slower[0] < SLOWER_SHARE:
        return "It costs little here; its memory on the host depends on max_entries."
    return f"{duration_text(slower[1] / 1e6)} more in each step than in those before it began."


def _remedy(whose: str) -> Remedy:
    if whose == "vramscope":
        return Remedy(
            "stop the recording",
            "What was recorded so far is kept only if a snapshot is taken first.",
            command="history_stop",
        )
    return Remedy(
        "switch the recording off, or record Python stacks of allocations alone",
        'stacks="all" and context="all" cost most; a window of some steps is enough.',
        fix="torch.cuda.memory._record_memory_history(enabled=None)",
    )
