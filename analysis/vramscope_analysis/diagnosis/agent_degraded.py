"""The finding ``agent_degraded``: what is shown is less than what was asked for.

Three things take from the picture: a rate that was lowered to stay within the cost budget, errors
of the agent that were kept away from the job, and rows that were dropped. Each is judged over a
time, so that a single slow second is no finding, and what is over goes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Finding, Remedy, Severity
from vramscope_analysis.diagnosis.words import count_text

KIND: Final = "agent_degraded"

RATE_WINDOW_S: Final = 30.0
LOW_FOR_S: Final = 10.0
"""So long within the window the rate has to have been low."""
LOW_SHARE: Final = 0.5
"""A rate below this share of the wanted one is low. The page shows the rate in any case, and seven
samples a second in place of ten, which is what half a percent of a core gives beside an H200, show
the same picture."""
COUNT_WINDOW_S: Final = 300.0
"""Errors and losses of this last time count."""

_MAX_GAP_S: Final = 5.0
"""A reading stands for the time until the next one, and no longer than this."""


@dataclass(frozen=True)
class AgentReading:
    """What an agent said of itself at one time; totals count from when it was attached."""

    time_s: float
    """Of any clock that does not go back."""
    attached_s: float
    """Seconds since attach."""
    rate_hz: float
    wanted_rate_hz: float
    cost_fraction: float
    budget_fraction: float
    errors: dict[str, int] = field(default_factory=dict[str, int])
    lost: dict[str, int] = field(default_factory=dict[str, int])


def agent_degraded(readings: Sequence[AgentReading]) -> Finding | None:
    """Judge an agent by what it said lately; ``None`` if all is as it was asked for.

    Args:
        readings: of one life of one agent, oldest first, at least the last five minutes.
    """
    if not readings:
        return None
    parts: list[str] = []
    evidence: dict[str, Any] = {}
    severity: Severity = "info"
    remedies: list[Remedy] = []
    if _low_s(readings) >= LOW_FOR_S:
        # As it was when it was low last: it may have recovered a moment ago.
        low = next(reading for reading in reversed(readings) if _is_low(reading))
        parts.append(_rate_words(low))
        evidence |= {
            "rate_hz": round(low.rate_hz, 2),
            "wanted_rate_hz": low.wanted_rate_hz,
            "budget_fraction": low.budget_fraction,
            "cost_fraction": round(low.cost_fraction, 5),
        }
        remedies.append(
            Remedy("raise cost_budget", "the rate is lowered to stay within the budget")
        )
    lost = _increase([reading.lost for reading in readings], _baseline(readings))
    if lost:
        dropped = count_text(sum(lost.values()), "row or message", "rows and messages")
        parts.append(f"{dropped} dropped")
        evidence["lost"] = lost
        severity = "warning"
    errors = _increase([reading.errors for reading in readings], _baseline(readings))
    if errors:
        places = ", ".join(sorted(errors))
        parts.append(f"{count_text(sum(errors.values()), 'error')} of the agent in: {places}")
        evidence["errors"] = errors
        severity = "warning"
    if not parts:
        return None
    text = "; ".join(parts)
    return Finding(
        KIND,
        severity,
        f"{text[0].upper()}{text[1:]}.",
        evidence,
        remedies=tuple(remedies),
    )


def _is_low(reading: AgentReading) -> bool:
    return reading.rate_hz < LOW_SHARE * reading.wanted_rate_hz


def _rate_words(low: AgentReading) -> str:
    words = f"sampling at {low.rate_hz:.1f} instead of {low.wanted_rate_hz:.0f} Hz"
    if low.budget_fraction <= 0:
        return words
    return f"{words} to stay within {low.budget_fraction * 100:.2g} % of a core"


def _low_s(readings: Sequence[AgentReading]) -> float:
    """For how long of the window the rate was low."""
    since_s = readings[-1].time_s - RATE_WINDOW_S
    low_s = 0.0
    for reading, following in pairwise(readings):
        start_s = max(reading.time_s, since_s)
        end_s = min(following.time_s, start_s + _MAX_GAP_S)
        if end_s > start_s and _is_low(reading):
            low_s += end_s - start_s
    return low_s


def _baseline(readings: Sequence[AgentReading]) -> int | None:
    """Index of the reading whose totals are not counted any more; ``None`` if all are."""
    since_s = readings[-1].time_s - COUNT_WINDOW_S
    older = [index for index, reading in enumerate(readings) if reading.time_s <= since_s]
    if older:
        return older[-1]
    # The first that was heard tells totals of a time before. They are recent if the agent is.
    return None if readings[0].attached_s < COUNT_WINDOW_S else 0


def _increase(totals: Sequence[dict[str, int]], baseline: int | None) -> dict[str, int]:
    before = {} if baseline is None else totals[baseline]
    grown = {name: count - before.get(name, 0) for name, count in totals[-1].items()}
    return {name: count for name, count in grown.items() if count > 0}
