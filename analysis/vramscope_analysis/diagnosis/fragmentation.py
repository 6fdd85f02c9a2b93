"""The finding ``fragmentation``: memory is reserved that was never needed at once.

Reserved memory beyond the most that tensors ever took lies in pieces that no request fitted. That
costs nothing while the device is large enough, and it is normal in part: so it is told from a
certain size on, and it is a warning only where requests have failed to find a place although there
was memory enough, or where the next step's will. Other settings are advised only if the replay of
a recorded window shows that they gain something.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.cache_use import CacheUse, cache_use
from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.fragmentation_evidence import (
    beyond_sentence,
    fragmentation_evidence,
    layout_of_pieces,
    request_sentence,
)
from vramscope_analysis.diagnosis.head_room import needed
from vramscope_analysis.diagnosis.next_request import NextRequest, next_request
from vramscope_analysis.diagnosis.piece_shape import PieceShape, shape_of, shape_remedies
from vramscope_analysis.diagnosis.settings_advice import settings_remedies
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
    """Judge how much reserved memory was never needed at once, and what comes of it."""
    ahead = next_request(rank)
    use = cache_use(rank, MIN_STEPS)
    # Without a look at the segments what graphs keep to themselves cannot be told from pieces.
    if use is not None and (use.private_bytes is None or use.limit_bytes is None):
        use = None
    remedies = settings_remedies(rank.settings, rank.trials)
    flushes = 0 if use is None else _needless_flushes(window_of(rank), use.limit_bytes)
    is_harmful = use is not None and _is_harmful(use, flushes)
    if ahead is None and not is_harmful and not (use is not None and _is_much(use, remedies)):
        return []
    layout = rank.layout if ahead is not None else layout_of_pieces(rank, use)
    shape = None if layout is None else shape_of(layout)
    proof = remedies or (() if rank.trials else (_RECORD,))
    return [
        Finding(
            KIND,
            "warning" if is_harmful or ahead is not None else "info",
            _headline(ahead)
            if ahead
            else _summary(use, shape, flushes if is_harmful else 0, beyond_sentence(rank)),
            fragmentation_evidence(rank, use, layout, shape, ahead, flushes),
            0.95 if remedies else 0.8,
            remedies=(*proof, *shape_remedies(shape)) or (_RECORD,),
            detail=_detail(rank, use, shape, ahead, flushes if is_harmful else 0),
        )
    ]


_RECORD: Final = Remedy(
    "record some steps, and have them replayed under other settings",
    "Only a replay of this job's own requests shows whether other settings would help.",
    None,
    "steps take up to 1.4 times as long while they are recorded",
    command="history_start",
)


def _is_harmful(use: CacheUse, flushes: int) -> bool:
    return flushes >= MIN_FLUSHES and use.unexplained_bytes >= HARMFUL_SHARE * use.reserved_bytes


def _is_much(use: CacheUse, remedies: tuple[Remedy, ...]) -> bool:
    """Whether it is much of the device, or a replay showed that it need not be."""
    lost, limit_bytes = use.unexplained_bytes, use.limit_bytes or 0
    if lost >= LARGE_SHARE * use.reserved_bytes and lost >= LIMIT_SHARE * limit_bytes:
        return True
    gain = max((remedy.predicted_bytes or 0 for remedy in remedies), default=0)
    return lost >= HARMFUL_SHARE * use.reserved_bytes and gain >= LIMIT_SHARE * limit_bytes


def _needless_flushes(window: Window | None, limit_bytes: int | None) -> int:
    """Flushes of the last steps that memory would have been enough for."""
    if window is None or limit_bytes is None:
        return 0
    fits = needed(window.rows) < ENOUGH_SHARE * limit_bytes
    return int(np.sum(window.flushes[fits]))


def _headline(ahead: NextRequest) -> str:
    wanted, largest = size_text(ahead.request.bytes), size_text(ahead.largest_bytes)
    return fitting(
        f"The next step needs {wanted} in one piece; the largest piece is {largest}, "
        f"of {size_text(ahead.free_bytes)} free."
    )


def _summary(use: CacheUse | None, shape: PieceShape | None, flushes: int, beyond: str) -> str:
    if use is None:
        return ""
    if flushes and beyond:
        return fitting(beyond)
    lost, of = size_text(use.unexplained_bytes), size_text(use.reserved_bytes)
    if flushes:
        return fitting(
            f"{lost} of {of} reserved lie in pieces; "
            f"the cache was flushed {count_text(flushes, 'time')} for one that fits."
        )
    why = "they lie in pieces" if shape is None else shape.short
    return fitting(f"{lost} of {of} reserved were never needed at once: {why}.")


def _detail(
    rank: RankEvidence,
    use: CacheUse | None,
    shape: PieceShape | None,
    ahead: NextRequest | None,
    flushes: int,
) -> str:
    sentences: list[str] = []
    if flushes and not ahead and beyond_sentence(rank):
        times = count_text(flushes, "time")
        sentences.append(f"The cache was flushed {times} for a step that fits.")
    if ahead is not None:
        sentences.append(
            "The cache has to be flushed for it."
            if ahead.place == "flush"
            else "Not even a flush of the cache makes room for it."
        )
    if use is not None:
        at = "" if use.highest_step is None else f", at step {count_text(use.highest_step)}"
        sentences.append(
            f"Tensors never took more than {size_text(use.highest_bytes)} at once{at}."
        )
    if shape is not None:
        sentences.append(shape.words)
    elif use is not None and use.stranded_bytes is not None:
        sentences.append(_stranded(use))
    if ahead is None:
        sentences.append(request_sentence(rank))
    return " ".join(sentence for sentence in sentences if sentence)


def _stranded(use: CacheUse) -> str:
    pieces = f"{size_text(use.stranded_bytes)} are stranded between live blocks"
    if use.largest_free_bytes is not None:
        pieces = f"{pieces}; the largest free piece is {size_text(use.largest_free_bytes)}"
    return f"At the end of a step {pieces}."
