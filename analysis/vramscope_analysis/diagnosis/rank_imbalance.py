"""The finding ``rank_imbalance``: one rank is fuller than the others, or holds them up.

All ranks of a job wait for the slowest and end with the first that runs out of memory. Ranks differ
by design in pipelines, so a rank stands out only against the spread of all, by much of the device,
and in both halves of the last steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.rank_account import (
    RankAccount,
    median_parts,
    rank_account,
    standing_out,
)
from vramscope_analysis.diagnosis.rank_stragglers import (
    KIND,
    MOST_TOLD,
    more_cache,
    more_flushes,
)
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text
from vramscope_analysis.evidence.run_evidence import RunEvidence

TIGHT_SHARE: Final = 0.1
EXPLAINED_SHARE: Final = 0.5

_CAUSES: Final = {
    "activations": Remedy(
        "spread long samples evenly over the ranks",
        "Its batches need more than those of the others: group samples by length, or limit it.",
    ),
    "parameters": Remedy(
        "split the model evenly",
        "This rank holds more of the parameters, and so more gradients and optimizer state.",
    ),
    "optimizer state": Remedy(
        "shard the optimizer's state over all ranks",
        "This rank holds more of it than the others.",
    ),
    "other processes": Remedy(
        "find out who else uses its device",
        "Other processes hold the difference, not this job.",
    ),
}


def rank_imbalance(run: RunEvidence) -> list[Finding]:
    """Judge all ranks against each other: memory, cache, and flushes that the others wait for."""
    if len(run.ranks) < 2:
        return []
    found = [rank_account(rank) for rank in run.ranks]
    accounts = [account for account in found if account is not None]
    if len(accounts) < 2 or len(accounts) < 0.5 * len(run.ranks):
        return []
    # Some may have too few steps yet, or have not been heard of.
    ranks = max(run.world_size, len(run.ranks))
    totals = {account.total_bytes for account in accounts}
    total_bytes = totals.pop() if len(totals) == 1 else None
    if not total_bytes:  # devices of different sizes are filled differently
        return more_flushes(accounts, ranks)
    fuller = _fuller(accounts, ranks, total_bytes)
    cached = more_cache(accounts, ranks, total_bytes)
    return [*fuller, *cached, *more_flushes(accounts, ranks)]


def _fuller(accounts: Sequence[RankAccount], ranks: int, total_bytes: int) -> list[Finding]:
    """Ranks that use more than the spread of all explains."""
    used = [
        [_outside(each) + size for each, size in zip(accounts, sizes, strict=True)]
        for sizes in (
            [each.needed.bytes for each in accounts],
            [each.needed.early_bytes for each in accounts],
            [each.needed.late_bytes for each in accounts],
        )
    ]
    chosen = standing_out(used, total_bytes)
    rest = [account for at, account in enumerate(accounts) if at not in chosen]
    return [_finding(accounts[at], rest, ranks) for at in chosen[:MOST_TOLD]]


def _outside(account: RankAccount) -> int:
    return account.parts.get("outside of PyTorch", 0) + account.parts.get("other processes", 0)


def _used(account: RankAccount) -> int:
    """What is not there for its tensors: all but what others could have of its cache."""
    return account.needed.bytes + _outside(account)


def _finding(account: RankAccount, rest: Sequence[RankAccount], ranks: int) -> Finding:
    more = _used(account) - int(np.median([_used(each) for each in rest]))
    median = median_parts(rest)
    differences = {
        name: size - median[name] for name, size in account.parts.items() if name in median
    }
    cause = max(differences, key=lambda name: differences[name], default="")
    explained = differences.get(cause, 0)
    has_cause = explained >= EXPLAINED_SHARE * more
    lefts = [each.left_bytes for each in rest if each.left_bytes is not None]
    is_tight = (
        account.left_bytes is not None
        and account.limit_bytes is not None
        and account.left_bytes < TIGHT_SHARE * account.limit_bytes
        and bool(lefts)
        and float(np.median(lefts)) > 2 * max(account.left_bytes, 0)
    )
    remedy = _CAUSES.get(cause) if has_cause else None
    return Finding(
        KIND,
        "warning" if is_tight else "info",
        _summary(account, lefts, more, ranks, is_tight=is_tight),
        {
            "more_bytes": more,
            "left_bytes": account.left_bytes,
            "others_left_bytes": [min(lefts), max(lefts)] if lefts else None,
            "differences": differences,
            "cause": cause if has_cause else None,
            "ranks": [account.rank],
        },
        0.9,
        remedies=() if remedy is None else (remedy,),
        detail=_detail(more, cause, explained, has_cause=has_cause),
        subject="memory",
        ranks=(account.rank,),
    )


def _summary(
    account: RankAccount, lefts: Sequence[int], more: int, ranks: int, *, is_tight: bool
) -> str:
    who = f"Rank {account.rank} of {count_text(ranks)}"
    if is_tight and account.left_bytes is not None:
        low, high = size_text(min(lefts)), size_text(max(lefts))
        range_words = low if low == high else f"{low.removesuffix(' GiB')} to {high}"
        return fitting(
            f"{who} is filling up: {size_text(max(account.left_bytes, 0))} left, "
            f"{count_text(len(lefts), 'other')} {'has' if len(lefts) == 1 else 'have'} "
            f"{range_words}.",
            f"{who} is filling up: {size_text(max(account.left_bytes, 0))} left.",
        )
    return fitting(f"{who} uses {size_text(more)} more at its peaks than the others.")


def _detail(more: int, cause: str, explained: int, *, has_cause: bool) -> str:
    if not has_cause:
        return f"{size_text(more)} more than the median of the others, in no part alone."
    return (
        f"{size_text(more)} more than the median of the others; "
        f"{size_text(min(explained, more))} of it are {cause}."
    )
