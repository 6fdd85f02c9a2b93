"""The finding ``fragmentation``: memory is reserved that was never needed at once.

Reserved memory beyond the most that tensors ever took lies in pieces that no request fitted. That
costs nothing while the device is large enough, and it is normal in part: so it is told from a
certain size on, and it is a warning only where requests have failed to find a place although there
was memory enough. Other settings are advised only if the replay of a recorded window shows that
they gain something.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.cache_use import CacheUse, cache_use
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.head_room import needed
from vramscope_analysis.diagnosis.settings_advice import refuted, settings_remedies
from vramscope_analysis.diagnosis.thrash import Window, window_of
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "fragmentation"
MIN_STEPS: Final = 60
LARGE_SHARE: Final = 0.25
"""So much of what is reserved lies in pieces: worth knowing, if it is much of the limit as well."""
LIMIT_SHARE: Final = 0.05
HARMFUL_SHARE: Final = 0.1
MIN_FLUSHES: Final = 3
ENOUGH_SHARE: Final = 0.9
"""A step that needs less than this part of the limit should have found a place."""


def fragmentation(rank: RankEvidence) -> list[Finding]:
    """Judge how much reserved memory was never needed at once, and what came of it."""
    use = cache_use(rank, MIN_STEPS)
    # Without a look at the segments what graphs keep to themselves cannot be told from pieces.
    if use is None or use.private_bytes is None or use.limit_bytes is None:
        return []
    lost = use.unexplained_bytes
    remedies = settings_remedies(rank.settings, rank.trials)
    flushes = _needless_flushes(window_of(rank), use.limit_bytes)
    gain = max((remedy.predicted_bytes or 0 for remedy in remedies), default=0)
    is_harmful = flushes >= MIN_FLUSHES and lost >= HARMFUL_SHARE * use.reserved_bytes
    is_large = lost >= LARGE_SHARE * use.reserved_bytes and lost >= LIMIT_SHARE * use.limit_bytes
    is_proven = lost >= HARMFUL_SHARE * use.reserved_bytes and gain >= LIMIT_SHARE * use.limit_bytes
    if not (is_harmful or is_large or is_proven):
        return []
    return [
        Finding(
            KIND,
            "warning" if is_harmful else "info",
            _summary(use, flushes if is_harmful else 0),
            _evidence(rank, use, flushes),
            0.95 if remedies else 0.8,
            remedies=remedies or (_RECORD,),
            detail=_detail(use),
        )
    ]


_RECORD: Final = Remedy(
    "record some steps, and have them replayed under other settings",
    "Only a replay of this job's own requests shows whether other settings would help.",
    None,
    "steps take up to 1.4 times as long while they are recorded",
    command="history_start",
)


def _needless_flushes(window: Window | None, limit_bytes: int) -> int:
    """Flushes of the last steps that memory would have been enough for."""
    if window is None:
        return 0
    fits = needed(window.rows) < ENOUGH_SHARE * limit_bytes
    return int(np.sum(window.flushes[fits]))


def _summary(use: CacheUse, flushes: int) -> str:
    lost, of = size_text(use.unexplained_bytes), size_text(use.reserved_bytes)
    if flushes:
        return fitting(
            f"{lost} of {of} reserved lie in pieces; "
            f"the cache was flushed {count_text(flushes, 'time')} for one that fits."
        )
    return fitting(f"{lost} of {of} reserved were never needed at once: they lie in pieces.")


def _detail(use: CacheUse) -> str:
    at = "" if use.highest_step is None else f", at step {count_text(use.highest_step)}"
    text = f"Tensors never took more than {size_text(use.highest_bytes)} at once{at}."
    if use.stranded_bytes is None:
        return text
    pieces = f"{size_text(use.stranded_bytes)} are stranded between live blocks"
    if use.largest_free_bytes is not None:
        pieces = f"{pieces}; the largest free piece is {size_text(use.largest_free_bytes)}"
    return f"{text} At the end of a step {pieces}."


def _evidence(rank: RankEvidence, use: CacheUse, flushes: int) -> dict[str, Any]:
    return {
        "series": "reserved_bytes.all.current",
        "reserved_bytes": use.reserved_bytes,
        "highest_bytes": use.highest_bytes,
        "in_pieces_bytes": use.unexplained_bytes,
        "utilisation_at_peak": round(use.highest_bytes / max(use.reserved_bytes, 1), 4),
        "stranded_bytes": use.stranded_bytes,
        "largest_free_bytes": use.largest_free_bytes,
        "private_pool_bytes": use.private_bytes,
        "limit_bytes": use.limit_bytes,
        "needless_flushes": flushes,
        "does_not_help": list(refuted(rank.settings, rank.trials)),
    }
