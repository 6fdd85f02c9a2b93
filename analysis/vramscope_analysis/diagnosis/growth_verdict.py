"""What a growth report says: the line that keeps what grows, who holds it, and of which kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from vramscope_analysis.diagnosis.finding import Culprit
from vramscope_analysis.diagnosis.growth_bound import Bound, bound_of
from vramscope_analysis.diagnosis.growth_group import (
    DEFINED,
    LEAST_LOOKS,
    NAMELESS,
    STORED,
    chain_of,
    counts_rise,
    grows,
    growth_bytes,
    is_nameless,
    lines_of,
    main_holder,
)
from vramscope_analysis.diagnosis.words import place_text
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport

Kind = Literal["leak", "cycle_growth", "retained_exception", "retention", "bounded"]

_OF_GROUP: Final = 0.5
"""So much of a group has to be garbage, or held in a way, for the group to be of that kind."""
_CULPRIT_SHARE: Final = 0.1
_MOST_CULPRITS: Final = 3
_NAMED_SHARE: Final = 0.05

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_BUFFERS: Final = frozenset(
    (
        "replay",
        "buffer",
        "buffers",
        "rollout",
        "rollouts",
        "memory",
        "window",
        "ring",
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
        bound: of the container that has most of it; None is not known.
        limited_at: a line that may keep it from growing for ever.
        at_step: the step of the last look.
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
    bound: Bound | None = None
    limited_at: Frame | None = None
    at_step: int = 0
    groups: tuple[GrowthGroup, ...] = field(default=(), repr=False)

    @property
    def held_by(self) -> tuple[str, ...]:
        """From the name that a person knows to the tensor."""
        return self.culprits[0].held_by if self.culprits else ()

    @property
    def held_share(self) -> float:
        """What the first holder has of it: not what others have whose storing lines are known."""
        first = main_holder(self.groups[0]) if self.groups else None
        if first is None or first.stored_at is None or not self.bytes:
            return 1.0
        others = sum(
            growth_bytes(group)
            for group in self.groups[1:]
            if (holder := main_holder(group)) is not None
            and holder.stored_at not in (None, first.stored_at)
        )
        return 1 - others / self.bytes

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
    if kind == "leak" and holder in NAMELESS:
        holder = _named(sums) or holder
    own = [group for group, of_kind in zip(groups, kinds, strict=True) if of_kind[0] == kind]
    own.sort(key=growth_bytes, reverse=True)
    # Whoever has the name comes first.
    own.sort(key=lambda group: _kind(group)[1] != holder)
    if kind == "leak" and holder in STORED and _kept_by_graph(own):
        holder = "autograd_graph"
    return _verdict(report, own, kind, holder)


def _by_its_name(
    report: GrowthReport, groups: Sequence[GrowthGroup], total: int
) -> Sequence[GrowthGroup]:
    """The groups, the first with the holder of as much memory whose storing line is known."""
    own = main_holder(groups[0])
    if own is not None and (own.stored_at is not None or own.kind in DEFINED):
        return groups
    for held in report.held:
        holder = main_holder(held)
        if holder is None or holder.stored_at is None or held.bytes < _OF_GROUP * total:
            continue
        if own is None or own.kind in (*STORED, *NAMELESS):
            return (replace(groups[0], holders=(holder,)), *groups[1:])
    return groups


def _named(sums: dict[tuple[Kind, str], int]) -> str:
    """Who holds a part of what has no name: a graph hangs on a tensor that somebody keeps."""
    least = _NAMED_SHARE * sum(sums.values())
    named = {
        holder: grown
        for (kind, holder), grown in sums.items()
        if kind == "leak" and holder not in NAMELESS and grown >= least
    }
    return max(named, key=lambda holder: named[holder], default="")


def _verdict(
    report: GrowthReport, groups: Sequence[GrowthGroup], kind: Kind, holder: str
) -> GrowthVerdict:
    total = sum(growth_bytes(group) for group in groups)
    names = [h.chain[0] for group in groups if (h := main_holder(group)) and h.chain]
    cycle = report.garbage.get("cycle", ())
    main = main_holder(groups[0])
    return GrowthVerdict(
        kind,
        holder,
        _culprits(report, _by_its_name(report, groups, total), total),
        total,
        _share(report, total),
        is_one_tensor=all(counts_rise(group) <= 0 for group in groups),
        is_buffer_by_name=holder in STORED and any(_is_buffer_name(name) for name in names),
        cycle=tuple(str(name) for name in cycle) if kind == "cycle_growth" else (),
        bound=None if main is None else bound_of(main.chain),
        limited_at=None if main is None else main.limited_at,
        at_step=report.steps[-1] if report.steps else 0,
        groups=tuple(groups),
    )


def _is_buffer_name(name: str) -> bool:
    if name.endswith("._buffers"):
        return False  # a module's own word
    return not _BUFFERS.isdisjoint(word.lower() for word in _WORD.findall(name))


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
    bound = bound_of(holder.chain)
    if holder.kind != "lru_cache" and bound is not None and bound.is_sure:
        return "bounded", holder.kind
    return "leak", holder.kind


def _kept_by_graph(groups: Sequence[GrowthGroup]) -> bool:
    """Whether most of it is held from C++ while a tensor that it hangs on has a name."""
    nameless = sum(growth_bytes(group) for group in groups if is_nameless(group))
    return nameless >= _OF_GROUP * sum(growth_bytes(group) for group in groups)


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
        for frame in lines_of(group):
            known = next(
                (c for c in culprits if (c.file, c.line) == (frame.file, frame.line)), None
            )
            if known is None:
                culprits.append(_culprit(group, frame, grown, rate))
        if not lines_of(group) and not culprits:
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
        () if holder is None else chain_of(holder, group.count),
    )
