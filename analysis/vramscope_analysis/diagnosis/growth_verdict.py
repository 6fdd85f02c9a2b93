"""What a growth report says: the line that keeps what grows, who holds it, and of which kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Literal

from vramscope_analysis.diagnosis.finding import Culprit
from vramscope_analysis.diagnosis.words import place_text
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder
from vramscope_analysis.moments.frame_kinds import FrameKind, kind_of
from vramscope_analysis.snapshot import Frame as SnapshotFrame

Kind = Literal["leak", "cycle_growth", "retained_exception", "retention", "bounded"]

LEAST_LOOKS: Final = 3
LRU_CACHE: Final = "lru_cache of "
_OF_GROUP: Final = 0.5
"""So much of a group has to be garbage, or held in a way, for the group to be of that kind."""
_FALLS_SHARE: Final = 0.2
"""What a group may have fallen by between two looks, as a share of its growth."""
_CULPRIT_SHARE: Final = 0.1
_MOST_CULPRITS: Final = 3
_NAMELESS: Final = ("cpp", "unknown")
_NAMED_SHARE: Final = 0.05
_STORED: Final = ("attribute", "global", "local", "closure")
_DEFINED: Final = ("hook", "lru_cache")
"""Holders whose frame is where they are defined."""

_BOUND: Final = re.compile(r"max(?:len|size)=\d+")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_BUFFERS: Final = frozenset(
    (
        "replay",
        "buffer",
        "buffers",
        "rollout",
        "rollouts",
        "fifo",
        "queue",
        "pool",
        "cache",
        "caches",
    )
)
"""What people call containers that are meant to fill up."""


@dataclass(frozen=True)
class GrowthVerdict:
    """What grows, judged from a report.

    Args:
        kind: ``bounded`` is a container that says itself how much it takes.
        holder: the kind of the holder of most of it, as in ``Holder.kind``.
        culprits: the lines, the largest first.
        bytes: of all groups that grow so.
        share: of all growth between the looks that they explain; at most 1.
        is_one_tensor: one tensor becomes larger: no tensors are added.
        is_buffer_by_name: what holds it is called a buffer, a queue or a cache.
        cycle: the names along a reference cycle, where it is one.
        groups: those that it is about.
    """

    kind: Kind
    holder: str
    culprits: tuple[Culprit, ...]
    bytes: int
    share: float
    is_one_tensor: bool = False
    is_buffer_by_name: bool = False
    cycle: tuple[str, ...] = ()
    groups: tuple[GrowthGroup, ...] = field(default=(), repr=False)

    @property
    def held_by(self) -> tuple[str, ...]:
        """From the name that a person knows to the tensor."""
        return self.culprits[0].held_by if self.culprits else ()

    @property
    def place(self) -> str:
        """``train.py:56``; empty where no line is known."""
        if not self.culprits or not self.culprits[0].file:
            return ""
        return place_text(self.culprits[0].file, self.culprits[0].line)


def verdict_of(report: GrowthReport) -> GrowthVerdict | None:
    """Judge a report; None where nothing grew steadily, or it looked too seldom."""
    groups = [group for group in report.groups if grows(group)]
    if not groups:
        return None
    kinds = [_kind(group) for group in groups]
    # What grows fastest says what it is; the rest that is of the same kind belongs to it.
    sums: dict[tuple[Kind, str], int] = {}
    for group, of_kind in zip(groups, kinds, strict=True):
        sums[of_kind] = sums.get(of_kind, 0) + growth_bytes(group)
    kind, holder = max(sums, key=lambda of_kind: (sums[of_kind], of_kind))
    if kind == "leak" and holder in _NAMELESS:
        holder = _named(sums) or holder
    own = [group for group, of_kind in zip(groups, kinds, strict=True) if of_kind[0] == kind]
    own.sort(key=growth_bytes, reverse=True)
    # Whoever has the name comes first.
    own.sort(key=lambda group: _kind(group)[1] != holder)
    if kind == "leak" and holder in _STORED and _kept_by_graph(own):
        holder = "autograd_graph"
    return _verdict(report, own, kind, holder)


def _by_its_name(
    report: GrowthReport, groups: Sequence[GrowthGroup], total: int
) -> Sequence[GrowthGroup]:
    """The groups, the first with the holder of as much memory whose storing line is known."""
    own = main_holder(groups[0])
    if own is not None and (own.stored_at is not None or own.kind in _DEFINED):
        return groups
    for held in report.held:
        holder = main_holder(held)
        if holder is None or holder.stored_at is None or held.bytes < _OF_GROUP * total:
            continue
        if own is None or own.kind in (*_STORED, *_NAMELESS):
            return (replace(groups[0], holders=(holder,)), *groups[1:])
    return groups


def _named(sums: dict[tuple[Kind, str], int]) -> str:
    """Who holds a part of what has no name: a graph hangs on a tensor that somebody keeps."""
    least = _NAMED_SHARE * sum(sums.values())
    named = {
        holder: grown
        for (kind, holder), grown in sums.items()
        if kind == "leak" and holder not in _NAMELESS and grown >= least
    }
    return max(named, key=lambda holder: named[holder], default="")


def _verdict(
    report: GrowthReport, groups: Sequence[GrowthGroup], kind: Kind, holder: str
) -> GrowthVerdict:
    total = sum(growth_bytes(group) for group in groups)
    names = [h.chain[0] for group in groups if (h := main_holder(group)) and h.chain]
    cycle = report.garbage.get("cycle", ())
    return GrowthVerdict(
        kind,
        holder,
        _culprits(report, _by_its_name(report, groups, total), total),
        total,
        _share(report, total),
        is_one_tensor=all(_counts_rise(group) <= 0 for group in groups),
        is_buffer_by_name=holder in _STORED and any(_is_buffer_name(name) for name in names),
        cycle=tuple(str(name) for name in cycle) if kind == "cycle_growth" else (),
        groups=tuple(groups),
    )


def _is_buffer_name(name: str) -> bool:
    if name.endswith("._buffers"):
        return False  # a module's own word
    return not _BUFFERS.isdisjoint(word.lower() for word in _WORD.findall(name))


def grows(group: GrowthGroup) -> bool:
    """Whether a group rose from look to look, and never fell back by much."""
    looks = group.bytes_at_looks
    if len(looks) < LEAST_LOOKS or looks[-1] <= looks[0]:
        return False
    rises = [after - before for before, after in pairwise(looks)]
    if sum(rise > 0 for rise in rises) < LEAST_LOOKS - 1:
        return False
    return min(rises) >= -_FALLS_SHARE * (looks[-1] - looks[0]) and _counts_rise(group) >= 0


def growth_bytes(group: GrowthGroup) -> int:
    """By how much a group grew from the first look to the last."""
    looks = group.bytes_at_looks
    return looks[-1] - looks[0] if len(looks) > 1 else group.bytes


def _counts_rise(group: GrowthGroup) -> int:
    counts = group.counts_at_looks
    return counts[-1] - counts[0] if counts else 0


def _share(report: GrowthReport, total: int) -> float:
    looks = report.live_bytes_at_looks
    if len(looks) < LEAST_LOOKS or looks[-1] <= looks[0]:
        return 0.0
    return min(total / (looks[-1] - looks[0]), 1.0)


def _kind(group: GrowthGroup) -> tuple[Kind, str]:
    if group.garbage_bytes >= _OF_GROUP * max(group.bytes, 1):
        return "cycle_growth", "garbage"
    holder = main_holder(group)
    if holder is None:
        return "leak", "unknown"
    if holder.kind == "garbage":
        return "cycle_growth", "garbage"
    if holder.kind == "exception":
        return "retained_exception", "exception"
    if holder.kind == "ipc":
        return "retention", "ipc"
    # A bounded lru_cache counts calls, not bytes: each may keep a whole model.
    if holder.kind != "lru_cache" and any(_BOUND.search(word) for word in holder.chain):
        return "bounded", holder.kind
    return "leak", holder.kind


def _kept_by_graph(groups: Sequence[GrowthGroup]) -> bool:
    """Whether most of it is held from C++ while a tensor that it hangs on has a name."""
    nameless = sum(growth_bytes(group) for group in groups if _is_nameless(group))
    return nameless >= _OF_GROUP * sum(growth_bytes(group) for group in groups)


def _is_nameless(group: GrowthGroup) -> bool:
    holder = main_holder(group)
    if holder is None or holder.kind == "cpp":
        return True
    return any(each.kind == "cpp" and each.tensors >= holder.tensors for each in group.holders)


def main_holder(group: GrowthGroup) -> Holder | None:
    """Who holds most of a group: somebody with a name, if there is one."""
    if not group.holders:
        return None
    return max(
        group.holders,
        key=lambda h: (h.kind not in _NAMELESS, h.tensors, h.is_growing is True),
    )


def _culprits(
    report: GrowthReport, groups: Sequence[GrowthGroup], total: int
) -> tuple[Culprit, ...]:
    steps = report.steps[-1] - report.steps[0] if len(report.steps) > 1 else 0
    culprits: list[Culprit] = []
    for group in groups:
        grown = growth_bytes(group)
        if culprits and grown < _CULPRIT_SHARE * total:
            break
        rate = grown / steps if steps > 0 else None
        for frame in _lines(group):
            known = next(
                (c for c in culprits if (c.file, c.line) == (frame.file, frame.line)), None
            )
            if known is None:
                culprits.append(_culprit(group, frame, grown, rate))
        if not _lines(group) and not culprits:
            culprits.append(_culprit(group, Frame("", 0), grown, rate))
    return tuple(culprits[:_MOST_CULPRITS])


def _culprit(group: GrowthGroup, frame: Frame, grown: int, rate: float | None) -> Culprit:
    holder = main_holder(group)
    return Culprit(
        frame.file,
        frame.line,
        frame.function,
        grown,
        rate,
        group.tensors,
        () if holder is None else _chain(holder),
    )


def _chain(holder: Holder) -> tuple[str, ...]:
    if holder.kind == "lru_cache" and holder.chain:
        return (f"{LRU_CACHE}{holder.chain[0]}", *holder.chain[1:])
    return holder.chain


def _lines(group: GrowthGroup) -> list[Frame]:
    """The line that stores it, where that is known, and the line that allocated it."""
    lines: list[Frame] = []
    holder = main_holder(group)
    stored = None if holder is None else _storing_line(holder)
    if stored is not None and _is_users(stored):
        lines.append(stored)
    allocated = user_line(group.stack)
    if allocated is not None and allocated not in lines:
        lines.append(allocated)
    return lines


def _storing_line(holder: Holder) -> Frame | None:
    if holder.stored_at is not None:
        return holder.stored_at
    # Of any other holder it is the line that happened to run when somebody looked.
    return holder.frame if holder.kind in _DEFINED else None


def user_line(stack: Sequence[Frame]) -> Frame | None:
    """The innermost line that the user wrote; else that of a library, else the innermost."""
    for most in (FrameKind.USER, FrameKind.LIBRARY, FrameKind.TORCH):
        for frame in stack:
            if _frame_kind(frame) <= most:
                return frame
    return stack[0] if stack else None


def _is_users(frame: Frame) -> bool:
    return _frame_kind(frame) <= FrameKind.LIBRARY


def _frame_kind(frame: Frame) -> FrameKind:
    return kind_of(SnapshotFrame(frame.file, frame.line, frame.function))
