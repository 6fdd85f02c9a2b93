"""Ranks in words: "rank 3", "ranks 3 and 5", "ranks 3, 5, 8 and 61 more"."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_NAMED: Final = 3


def rank_names(ranks: Collection[int]) -> str:
    """The first few by number, the others by their count."""
    numbers = [str(rank) for rank in sorted(ranks)]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    head, last = numbers[:-1], numbers[-1]
    if len(numbers) > _NAMED + 1:
        head, last = numbers[:_NAMED], f"{len(numbers) - _NAMED} more"
    return f"ranks {', '.join(head)} and {last}"


def capitalised(sentence: str) -> str:
    """With its first letter large, and a full stop at its end."""
    text = sentence.strip()
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?" else f"{text}."
