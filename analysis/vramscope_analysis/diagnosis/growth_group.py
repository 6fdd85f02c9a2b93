"""One group of a growth report: whether it grows, who holds it, and which lines are behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, Holder
from vramscope_analysis.moments.frame_kinds import FrameKind, kind_of
from vramscope_analysis.snapshot import Frame as SnapshotFrame

LEAST_LOOKS: Final = 3
LRU_CACHE: Final = "lru_cache of "
_SIZE: Final = re.compile(r" of (\d+)$")
_MEMBER: Final = re.compile(r"\[\d+\]$")
NAMELESS: Final = ("cpp", "unknown")
"""Holders without a name."""
STORED: Final = ("attribute", "global", "local", "closure")
"""Holders that are a name, and nothing else."""
DEFINED: Final = ("hook", "lru_cache")
"""Holders whose frame is where they are defined."""

_FALLS_SHARE: Final = 0.2
"""What a group may have fallen by between two looks, as a share of its growth."""


def grows(group: GrowthGroup) -> bool:
    """Whether a group rose from look to look, and never fell back by much."""
    looks = group.bytes_at_looks
    if len(looks) < LEAST_LOOKS or looks[-1] <= looks[0]:
        return False
    rises = [after - before for before, after in pairwise(looks)]
    if sum(rise > 0 for rise in rises) < LEAST_LOOKS - 1:
        return False
    return min(rises) >= -_FALLS_SHARE * (looks[-1] - looks[0]) and counts_rise(group) >= 0


def growth_bytes(group: GrowthGroup) -> int:
    """By how much a group grew from the first look to the last."""
    looks = group.bytes_at_looks
    return looks[-1] - looks[0] if len(looks) > 1 else group.bytes


def counts_rise(group: GrowthGroup) -> int:
    """By how many blocks a group grew from the first look to the last."""
    counts = group.counts_at_looks
    return counts[-1] - counts[0] if counts else 0


def main_holder(group: GrowthGroup) -> Holder | None:
    """Who holds most of a group: somebody with a name, if there is one."""
    if not group.holders:
        return None
    return max(
        group.holders,
        key=lambda h: (h.kind not in NAMELESS, h.tensors, h.is_growing is True),
    )


def is_nameless(group: GrowthGroup) -> bool:
    """Whether at least half of a group is held from C++."""
    holder = main_holder(group)
    if holder is None or holder.kind == "cpp":
        return True
    return any(each.kind == "cpp" and each.tensors >= holder.tensors for each in group.holders)


def chain_of(holder: Holder, count: int = 0) -> tuple[str, ...]:
    """From the name that a person knows to the tensor; a cache is called one.

    Args:
        holder: of a group.
        count: of its blocks. Where all samples were of one member of a list, ``checkpoints[1]``,
            and that has no room for as many, the list is meant.
    """
    chain = holder.chain
    if holder.kind == "lru_cache" and chain:
        return (f"{LRU_CACHE}{chain[0]}", *chain[1:])
    member = next((place for place, word in enumerate(chain) if _MEMBER.match(word)), 0)
    sizes = [int(found[1]) for word in chain[member:] if (found := _SIZE.search(word))]
    return (*chain[:member], "list") if member and sizes and sizes[-1] < count else chain


def lines_of(group: GrowthGroup) -> list[Frame]:
    """The line that stores it, where that is known, and the line that allocated it."""
    lines: list[Frame] = []
    holder = main_holder(group)
    stored = None if holder is None else _storing_line(holder)
    if stored is not None and is_users(stored):
        lines.append(stored)
    allocated = user_line(group.stack)
    if allocated is not None and allocated not in lines:
        lines.append(allocated)
    return lines


def _storing_line(holder: Holder) -> Frame | None:
    if holder.stored_at is not None:
        return holder.stored_at
    # Of any other holder it is the line that happened to run when somebody looked.
    return holder.frame if holder.kind in DEFINED else None


def user_line(stack: Sequence[Frame]) -> Frame | None:
    """The innermost line that the user wrote; else that of a library, else the innermost."""
    for most in (FrameKind.USER, FrameKind.LIBRARY, FrameKind.TORCH):
        for frame in stack:
            if _frame_kind(frame) <= most:
                return frame
    return stack[0] if stack else None


def is_users(frame: Frame) -> bool:
    """Whether a line is the user's, or of an installed library: not PyTorch's, not Python's."""
    return _frame_kind(frame) <= FrameKind.LIBRARY


def _frame_kind(frame: Frame) -> FrameKind:
    return kind_of(SnapshotFrame(frame.file, frame.line, frame.function))
