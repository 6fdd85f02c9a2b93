"""The finding ``near_oom`` of a job that is nearly full and stays so: what would give it room.

What grows towards the limit is another question; this is about a job that fits, barely.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.advisor import advise
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.head_room import WINDOW_STEPS, HeadRoom, head_room, needed
from vramscope_analysis.diagnosis.settings_advice import settings_remedies
from vramscope_analysis.diagnosis.words import count_text, fitting, share_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "near_oom"
SUBJECT: Final = "head-room"
TIGHT_SHARE: Final = 0.05
"""Less than this part of the limit is tight."""
MIN_STEPS: Final = 40
FLAT_SHARE: Final = 0.01
"""A peak that moves by less than this part of the limit is flat."""


def tight(rank: RankEvidence) -> list[Finding]:
    """Judge the head-room at the peak of a job whose peak does not grow."""
    room = head_room(rank)
    if room is None or room.steps < MIN_STEPS or room.left_share >= TIGHT_SHARE:
        return []
    flat_steps = _flat_steps(rank, room)
    if flat_steps < MIN_STEPS:
        return []  # it may still rise: who looks at trends will say so
    if not _comes_back(rank, room):
        return []  # a single high moment, long over: what it has left behind is another finding
    left = f"{size_text(max(room.left_bytes, 0))} ({share_text(max(room.left_share, 0))})"
    return [
        Finding(
            KIND,
            "info",
            fitting(
                f"Tight. {left} of head-room at the peak; "
                f"flat for {count_text(flat_steps, 'step')}.",
            ),
            {
                "series": "step.peak_active_bytes",
                "limit_bytes": room.limit_bytes,
                "needed_bytes": room.needed_bytes,
                "left_bytes": room.left_bytes,
                "reserved_bytes": room.reserved_bytes,
                "at_step": room.at_step,
                "flat_steps": flat_steps,
            },
            remedies=(*advise(rank), *settings_remedies(rank.settings, rank.trials)),
            detail=f"The highest of the last {count_text(room.steps, 'step')} needed "
            f"{size_text(room.needed_bytes)} of {size_text(room.limit_bytes)}.",
            subject=SUBJECT,
        )
    ]


def _comes_back(rank: RankEvidence, room: HeadRoom) -> bool:
    """Whether the last steps were as high, or several before them: an evaluation returns."""
    most = needed(rank.steps.after(-WINDOW_STEPS))
    most = most[np.isfinite(most)]
    is_high = most >= (1 - TIGHT_SHARE) * room.limit_bytes
    return bool(is_high[-MIN_STEPS:].any() or np.count_nonzero(is_high) > 1)


def _flat_steps(rank: RankEvidence, room: HeadRoom) -> int:
    """For how many steps the highest peak so far has not risen by much."""
    most = needed(rank.steps)
    most = most[np.isfinite(most)]
    highest = np.maximum.accumulate(most)
    risen = np.flatnonzero(highest < highest[-1] - FLAT_SHARE * room.limit_bytes)
    return len(most) - (int(risen[-1]) + 1 if len(risen) else 0)
