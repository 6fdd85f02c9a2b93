"""Ranks that need what the others need, and hold more in their cache or flush it more often.

All ranks of a job do the same work on devices of one size, so a cache that is much larger on one of
them is no matter of the model: something was needed there once, or its memory is in pieces. Whoever
has to flush the cache makes all others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.rank_account import Level, RankAccount, excess, standing_out
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text

KIND: Final = "rank_imbalance"
MOST_TOLD: Final = 4
MIN_FLUSHES: Final = 3
FAR_MORE: Final = 4
"""So many times as often as the others: what is a little more is chance."""
_IN_PIECES_SHARE: Final = 0.5
"""Of what a rank has more than the others: from so much on it is a matter of pieces."""
_OF_LIMIT: Final = 0.05
"""A rank that needs so much more than the others flushes for that reason."""

_IN_PIECES: Final = Remedy(
    "record a window on this rank, and have other allocator settings replayed",
    "Its free memory is in pieces between live blocks: emptying the cache does not return them.",
    command="history_start",
)


def more_cache(accounts: Sequence[RankAccount], ranks: int, total_bytes: int) -> list[Finding]:
    """Ranks that need no more than the others, and have reserved much more.

    Args:
        accounts: of the ranks that have one.
        ranks: how many there are.
        total_bytes: size of the device of each.
    """
    known = [(each, each.cache) for each in accounts if each.cache is not None]
    if len(known) < 2:
        return []
    caches = [cache for _, cache in known]
    chosen = standing_out(
        [
            [cache.bytes for cache in caches],
            [cache.early_bytes for cache in caches],
            [cache.late_bytes for cache in caches],
        ],
        total_bytes,
    )
    needed = np.array([each.needed.bytes for each, _ in known], np.float64)
    is_fuller = excess(needed, total_bytes) > 0
    rest = [pair for at, pair in enumerate(known) if at not in chosen]
    return [
        _cache_finding(*known[at], rest, ranks)
        for at in chosen[:MOST_TOLD]
        if not is_fuller[at]  # what needs more has more of everything
    ]


def _cache_finding(
    account: RankAccount,
    cache: Level,
    rest: Sequence[tuple[RankAccount, Level]],
    ranks: int,
) -> Finding:
    more = cache.bytes - int(np.median([other.bytes for _, other in rest]))
    stranded = account.stranded_bytes
    in_pieces = None if stranded is None else stranded >= _IN_PIECES_SHARE * more
    who = f"Rank {account.rank} of {count_text(ranks)} holds {size_text(more)} more in its cache"
    remedies: tuple[Remedy, ...] = ()
    if in_pieces is not None:
        remedies = (_IN_PIECES if in_pieces else _emptied(more),)
    return Finding(
        KIND,
        "info",
        fitting(f"{who}; its tensors need no more than the others'.", f"{who}."),
        {
            "series": "step.peak_reserved_bytes",
            "more_bytes": more,
            "cache_bytes": cache.bytes,
            "stranded_bytes": stranded,
            "flushes": account.flushes,
            "ranks": [account.rank],
        },
        0.85,
        remedies=remedies,
        detail=_cache_detail(cache, rest, in_pieces=in_pieces),
        subject="cache",
        ranks=(account.rank,),
    )


def _emptied(more: int) -> Remedy:
    return Remedy(
        "empty the cache of this rank once",
        "Whole segments that it needed once go back to the device, for libraries and others.",
        more,
        "some milliseconds; memory is taken anew when it is needed again",
        "torch.cuda.empty_cache()",
        "empty_cache",
    )


def _cache_detail(
    cache: Level, rest: Sequence[tuple[RankAccount, Level]], *, in_pieces: bool | None
) -> str:
    usual = size_text(int(np.median([other.bytes for _, other in rest])))
    words = f"{size_text(cache.bytes)} are reserved beyond its peaks, {usual} on the others."
    if in_pieces is None:
        return words
    if in_pieces:
        return f"{words} Most of it is in pieces between live blocks."
    return f"{words} Most of it is whole segments: it has needed more before than it does now."


def more_flushes(accounts: Sequence[RankAccount], ranks: int) -> list[Finding]:
    """Ranks that flush their cache far more often than the others: everybody waits for them.

    Args:
        accounts: of the ranks that have one.
        ranks: how many there are.
    """
    known = [(each, each.flushes) for each in accounts if each.flushes is not None]
    if len(known) < 2:
        return []
    # Of two the other one is the usual; of more the median, which one exception does not move.
    counts = [flushes for _, flushes in known]
    usual = min(counts) if len(counts) == 2 else int(np.median(counts))
    flushing = [
        (each, flushes)
        for each, flushes in known
        if flushes >= MIN_FLUSHES and flushes > FAR_MORE * usual
    ]
    if not flushing or len(flushing) > max(1, len(known) // 4):
        return []
    rest = [(each, flushes) for each, flushes in known if (each, flushes) not in flushing]
    return [_flush_finding(*each, rest, ranks) for each in flushing[:MOST_TOLD]]


def _flush_finding(
    account: RankAccount, flushes: int, rest: Sequence[tuple[RankAccount, int]], ranks: int
) -> Finding:
    needs = account.needed.bytes - int(np.median([each.needed.bytes for each, _ in rest]))
    never = sum(other == 0 for _, other in rest)
    others = int(np.median([other for _, other in rest]))
    tail = f", the others {count_text(others, 'time')} or so" if others else ""
    cause = (
        f"It needs {size_text(needs)} more at its peaks."
        if account.limit_bytes is not None and needs >= _OF_LIMIT * account.limit_bytes
        else "It needs no more than they do: its memory fits less well."
    )
    return Finding(
        KIND,
        "warning",
        fitting(
            f"Rank {account.rank} of {count_text(ranks)} flushed its cache "
            f"{count_text(flushes, 'time')}{tail}; the others wait for it.",
            f"Rank {account.rank} flushed its cache {count_text(flushes, 'time')}{tail}.",
        ),
        {
            "series": "num_alloc_retries",
            "flushes": flushes,
            "others_flushes": others,
            "more_bytes": needs,
            "ranks": [account.rank],
        },
        0.85,
        detail=f"{count_text(never, 'other rank')} did so not once in the same steps. {cause} A "
        "collective takes as long as its slowest rank.",
        subject="flushes",
        ranks=(account.rank,),
    )
