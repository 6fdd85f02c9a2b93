"""A container that fills up for the first time: it grows as a leak does, until it is full.

A bound that it has itself is one: then only the memory may be too small for it. A bound that its
owner has, a line that takes out again, or a name such as ``replay_buffer`` is a hint, and what it
is about stays suspected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from vramscope_analysis.diagnosis.finding import Finding, Remedy, Severity
from vramscope_analysis.diagnosis.forecast import Forecast
from vramscope_analysis.diagnosis.growth_bound import Bound
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_group import counts_rise, growth_bytes
from vramscope_analysis.diagnosis.growth_reading import GrowthReading
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict
from vramscope_analysis.diagnosis.holder_remedies import remedies_of
from vramscope_analysis.diagnosis.holder_words import holder_name, title_of
from vramscope_analysis.diagnosis.trend import Growth
from vramscope_analysis.diagnosis.words import count_text, fitting, place_text, size_text
from vramscope_analysis.evidence.growth_report import GrowthGroup

KIND: Final = "leak"
WILL_NOT_FIT: Final = "near_oom"

_URGENT_S: Final = 15 * 60.0
_NEAR_S: Final = 3600.0
_MUCH: Final = 0.33
"""It has grown for this share of the steps that are left."""
_PAST: Final = 0.25
"""Grown by this share of its full size beyond its bound, a container does not keep to it."""


@dataclass(frozen=True)
class Filling:
    """How far a container is.

    Args:
        bound: what is known of it, with what has come since somebody looked.
        full_bytes: what it holds when it is full.
        left_bytes: what is still to come.
    """

    bound: Bound
    full_bytes: float
    left_bytes: float


def filling_of(growth: Growth, verdict: GrowthVerdict) -> Filling | None:
    """How far the container is that grows; None if no bound is known, or it has not kept to it.

    Args:
        growth: of the floor.
        verdict: what the agent found.
    """
    bound = verdict.bound
    if bound is None or bound.is_of_calls or not bound.filled:
        return None
    each = _entry_bytes(verdict.groups)
    since = max(growth.until_step - verdict.at_step, 0) * growth.slope_bytes
    left, full = (bound.most - bound.filled) * each - since, bound.most * each
    # One tensor that is made longer takes no entries.
    if not each or (left < -_PAST * full and not bound.is_sure):
        return None
    now = min(bound.filled + int(since / each), bound.most)
    return Filling(replace(bound, filled=now), full, max(left, 0.0))


def _entry_bytes(groups: Sequence[GrowthGroup]) -> float:
    """What one more entry takes: a block of each line that allocates for it.

    What is live of these lines is not all that is in the container: who looks knows the lines only
    of what came since.
    """
    return sum(
        growth_bytes(group) / counts_rise(group) for group in groups if counts_rise(group) > 0
    )


def may_fill_up(growth: Growth, verdict: GrowthVerdict) -> bool:
    """Whether there is a hint that what grows will be full once.

    Args:
        growth: of the floor.
        verdict: what the agent found.
    """
    if verdict.kind == "bounded":
        return True
    if verdict.bound is not None and not verdict.bound.is_of_calls:
        return filling_of(growth, verdict) is not None
    return verdict.limited_at is not None or verdict.is_buffer_by_name


def filling_up(reading: GrowthReading, growth: Growth, verdict: GrowthVerdict) -> list[Finding]:
    """What is to be said of a container that fills up.

    Args:
        reading: of the growth of a rank.
        growth: of its floor.
        verdict: what the agent found: a container that may be full once.
    """
    filling = filling_of(growth, verdict)
    forecast = _forecast(reading, growth, filling)
    is_sure = verdict.kind == "bounded"
    if is_sure and (forecast is None or filling is None):
        return []
    return [
        Finding(
            WILL_NOT_FIT if is_sure else KIND,
            _severity(growth, forecast, is_sure=is_sure),
            _sentence(reading, growth, verdict, filling, forecast),
            _evidence(reading, growth, verdict, filling),
            0.8 if is_sure else 0.45,
            culprits=verdict.culprits,
            remedies=_remedies(growth, verdict, filling),
            detail=_detail(growth, verdict, filling),
            subject=verdict.place or holder_name(verdict.held_by),
            stage="confirmed" if is_sure else "suspected",
            since_step=growth.since_step,
        )
    ]


def _forecast(reading: GrowthReading, growth: Growth, filling: Filling | None) -> Forecast | None:
    """When memory is full, unless the container is full before."""
    forecast = reading.forecast
    if forecast is None or filling is None:
        return forecast
    is_full_before = filling.left_bytes <= forecast.early_steps * growth.slope_bytes
    return None if is_full_before else forecast


def _severity(growth: Growth, forecast: Forecast | None, *, is_sure: bool) -> Severity:
    """What may be full long before is only worth knowing until a good part of the way is done."""
    if forecast is None:
        return "info"
    if not is_sure and (forecast.late_s > _NEAR_S or growth.steps < _MUCH * forecast.late_steps):
        return "info"
    return "critical" if forecast.late_s < _URGENT_S else "warning"


def _sentence(
    reading: GrowthReading,
    growth: Growth,
    verdict: GrowthVerdict,
    filling: Filling | None,
    forecast: Forecast | None,
) -> str:
    pace = pace_text(growth, reading.staircase)
    place = f" at {verdict.place}" if verdict.place else ""
    tail = _tail(filling, forecast)
    name = holder_name(verdict.held_by) or "A container"
    return fitting(
        f"{name} fills up by {pace}{place}{tail}",
        f"{name} fills up by {pace}{tail}",
        f"A container fills up by {pace}{place}{tail}",
        f"A container fills up by {pace}{tail}",
    )


def _tail(filling: Filling | None, forecast: Forecast | None) -> str:
    number = "" if filling is None else f": {_number(filling.bound)}"
    if forecast is not None:
        before = "before it is full" if filling is not None else "unless it is full before"
        return f"{number}. {forecast.words[:-1]}, {before}."
    return f"{number}." if filling is not None else ". Not yet clear whether it has a bound."


def _number(bound: Bound) -> str:
    return f"{count_text(bound.filled)} of {count_text(bound.most)}"


def _detail(growth: Growth, verdict: GrowthVerdict, filling: Filling | None) -> str:
    words = [since_text(growth)]
    if filling is not None:
        word = f", if it keeps to its {filling.bound.word}" if not filling.bound.is_sure else ""
        words.append(f"Full it holds about {size_text(filling.full_bytes)}{word}.")
    elif verdict.limited_at is not None:
        line = place_text(verdict.limited_at.file, verdict.limited_at.line)
        words.append(
            f"{line} takes out of it again, or looks at how many there are: what it has by then "
            "decides whether it fits."
        )
    else:
        words.append("A bound decides it: with one it is a buffer, without one it is a leak.")
    return " ".join(words)


def _evidence(
    reading: GrowthReading, growth: Growth, verdict: GrowthVerdict, filling: Filling | None
) -> dict[str, object]:
    evidence = growth_evidence(reading, growth)
    evidence |= {
        "title": title_of(verdict),
        "share": round(verdict.share, 2),
        "holder": verdict.holder,
    }
    if filling is not None:
        evidence |= {
            "filled": filling.bound.filled,
            "most": filling.bound.most,
            "full_bytes": int(filling.full_bytes),
        }
    return evidence


def _remedies(
    growth: Growth, verdict: GrowthVerdict, filling: Filling | None
) -> tuple[Remedy, ...]:
    others = remedies_of(verdict, int(growth.grown_bytes * verdict.held_share))
    if filling is None:
        return others
    word = filling.bound.word or "size"
    fewer = Remedy(
        f"Lower its {word}, or keep it on the CPU",
        "It then holds less on the GPU when it is full; nothing else has to change.",
        int(filling.full_bytes / 2),
        fix=f"{word}={count_text(filling.bound.most // 2).replace(',', '_')}",
    )
    return (fewer, *others[1:])
