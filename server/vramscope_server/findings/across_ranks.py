"""Puts together what is the same on several ranks: one finding, with all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import SEVERITIES, Finding
from vramscope_server.findings.judging import Found

ALONE: Final = frozenset({"oom", "other_process", "rank_imbalance", "agent_degraded"})
"""Kinds that have causes of their own on each rank."""
GROWTH: Final = frozenset({"leak", "cycle_growth", "retained_exception", "retention"})
"""What grows, as far as it is known: a growth that is looked into becomes one of them."""

_ALIKE: Final = 0.25
"""Slopes on two ranks that differ by less come from the same line."""


def across_ranks(found: Sequence[Found]) -> list[Found]:
    """Findings of one kind and subject as one, in the words of the most urgent.

    A growth that is only suspected on some ranks, and as fast as one whose line another rank has
    told, is that one.
    """
    groups: dict[tuple[str, str, str], list[Found]] = {}
    apart: list[Found] = []
    for each in _without_suspected_twins(found):
        finding = each.finding
        if finding.kind in ALONE or not finding.ranks:
            apart.append(each)
        else:
            key = (finding.kind, finding.subject, finding.stage)
            groups.setdefault(key, []).append(each)
    return [*(_merged(group) for group in groups.values()), *apart]


def _merged(group: list[Found]) -> Found:
    if len(group) == 1:
        return group[0]
    worst = min(group, key=_urgency)
    ranks = sorted({rank for each in group for rank in each.finding.ranks})
    return Found(worst.judge, replace(worst.finding, ranks=tuple(ranks)))


def _without_suspected_twins(found: Sequence[Found]) -> list[Found]:
    told = [each for each in found if _is_growth(each) and each.finding.stage == "confirmed"]
    kept: list[Found] = []
    absorbed: dict[int, set[int]] = {}
    for each in found:
        is_open = _is_growth(each) and each.finding.stage == "suspected"
        twin = next((one for one in told if is_open and _is_as_fast(each, one)), None)
        if twin is None:
            kept.append(each)
        else:
            absorbed.setdefault(id(twin), set()).update(each.finding.ranks)
    return [
        Found(
            each.judge,
            replace(
                each.finding,
                ranks=tuple(sorted({*each.finding.ranks, *absorbed[id(each)]})),
            ),
        )
        if id(each) in absorbed
        else each
        for each in kept
    ]


def _is_growth(each: Found) -> bool:
    return each.finding.kind in GROWTH


def _is_as_fast(one: Found, other: Found) -> bool:
    slopes = [_slope(each.finding) for each in (one, other)]
    if slopes[0] is None or slopes[1] is None:
        return False
    return abs(slopes[0] - slopes[1]) <= _ALIKE * abs(slopes[1])


def _slope(finding: Finding) -> float | None:
    slope: Any = finding.evidence.get("slope_bytes_per_step")
    return float(slope) if isinstance(slope, (int, float)) else None


def _urgency(each: Found) -> tuple[int, float, tuple[int, ...]]:
    finding = each.finding
    return -SEVERITIES.index(finding.severity), -finding.confidence, finding.ranks
