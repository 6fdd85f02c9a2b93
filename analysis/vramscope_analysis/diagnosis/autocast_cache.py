"""The finding ``retention`` of autocast: copies of weights that are kept until its region ends.

What was free when the region ended was held by nothing but its cache: weights that were used
without gradients, as of a teacher or in an evaluation. Nothing grows: it comes in each step and
goes again, and decides about memory only where the step is at its highest meanwhile.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.words import MIB, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "retention"
SUBJECT: Final = "autocast"
CACHE: Final = "step.autocast_cache_bytes"
PEAK: Final = "step.peak_allocated_bytes"
LEAST_BYTES: Final = 8 * MIB
LEAST_SHARE: Final = 0.05
"""Of the peaks of steps."""
RECENT_ROWS: Final = 96
LEAST_LOOKS: Final = 8
"""The agent looks in some of the steps."""
_NEARLY_ALL: Final = 0.9
"""So many of the looks have it: a single evaluation is over before anybody reads of it."""


def autocast_cache(rank: RankEvidence) -> list[Finding]:
    """Judge what copies of weights hold within steps.

    Args:
        rank: what is known of it.
    """
    held = rank.steps.numbers(CACHE)[-RECENT_ROWS:]
    held = held[~np.isnan(held)]
    peaks = rank.steps.numbers(PEAK)[-RECENT_ROWS:]
    peaks = peaks[~np.isnan(peaks)]
    if len(held) < LEAST_LOOKS or not len(peaks):
        return []
    usual, peak = float(np.median(held)), float(np.median(peaks))
    least = max(LEAST_BYTES, LEAST_SHARE * peak)
    if usual < least or float((held >= least).mean()) < _NEARLY_ALL:
        return []
    size = size_text(usual)
    return [
        Finding(
            KIND,
            "info",
            fitting(
                f"In each step autocast keeps {size} of copies of weights until its region ends."
            ),
            {
                "title": "Copies of weights kept by autocast",
                "series": CACHE,
                "held_bytes": int(usual),
                "peak_bytes": int(peak),
                "facts": ["They are free when the region ends: nothing else holds them."],
            },
            0.9,
            remedies=_remedies(int(usual)),
            detail=(
                "They come with each step and go with it, so nothing grows. Weights that are used "
                "without gradients, as of a teacher, leave them behind."
            ),
            subject=SUBJECT,
        )
    ]


def _remedies(held: int) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Do not cache where weights are used once, without gradients",
            "A copy is then free as soon as it has been used.",
            held,
            "A weight that is used several times in the region is copied each time.",
            "with torch.autocast(device, cache_enabled=False):",
        ),
        Remedy(
            "End the region sooner: a smaller region for that part alone",
            "Its copies are gone before the rest of the step needs memory.",
            held,
        ),
        Remedy(
            "Keep that model in the lower precision",
            "There is then nothing to copy, and it takes half of the memory.",
            held,
            fix="teacher.to(torch.bfloat16)",
        ),
    )
