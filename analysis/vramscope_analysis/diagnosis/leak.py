"""The finding ``leak``: memory at the ends of steps rises, and does not come back.

The course of the floor alone makes it suspected: a buffer that is meant to fill up looks the same
until it is full. When the agent has looked at the blocks and found which of them stay, and who
holds them, it is confirmed, or turns out to be of another kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vramscope_analysis.diagnosis.filling_up import filling_up, may_fill_up
from vramscope_analysis.diagnosis.finding import Culprit, Finding, Severity
from vramscope_analysis.diagnosis.forecast import Forecast
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, pace_text, since_text
from vramscope_analysis.diagnosis.growth_reading import GrowthReading, growth_reading
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict
from vramscope_analysis.diagnosis.holder_remedies import remedies_of
from vramscope_analysis.diagnosis.holder_words import holder_name, title_of
from vramscope_analysis.diagnosis.trend import FIRST_WINDOW, Growth
from vramscope_analysis.diagnosis.words import count_text, fitting, place_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "leak"

_URGENT_S: Final = 15 * 60.0
_NEAR_S: Final = 3600.0
_MUCH: Final = 0.25
"""Share of what the process may have that has to be gone before a mere suspicion is a warning, and
a leak is critical whose end is far: what fills up may be full long before."""

_NEARLY_ALL: Final = 0.85


def leak(rank: RankEvidence) -> list[Finding]:
    """Judge whether a rank leaks.

    Args:
        rank: what is known of it.
    """
    reading = growth_reading(rank)
    growth = reading.growth
    if growth is None:
        return []
    verdict = reading.verdict
    if verdict is None:
        return _suspected(reading, growth) if reading.is_suspicious else []
    if verdict.kind not in ("leak", "bounded") or reading.cause == "in use":
        return []  # a model that is enlarged is held by somebody, as it has to be
    if verdict.is_one_tensor and not reading.is_suspicious:
        return []
    if verdict.holder != "autograd_graph" and may_fill_up(growth, verdict):
        return filling_up(reading, growth, verdict)
    return [_confirmed(reading, growth, verdict)]


def _suspected(reading: GrowthReading, growth: Growth) -> list[Finding]:
    severity = _suspicion(reading, growth)
    if severity == "info" and not reading.is_asked and growth.steps < FIRST_WINDOW:
        return []  # the agent is asked, and answers sooner than anybody has to know
    return [_question(reading, growth, severity)]


def _question(reading: GrowthReading, growth: Growth, severity: Severity) -> Finding:
    pace = pace_text(growth, reading.staircase)
    steps = count_text(growth.steps, "step")
    how = (
        f"{pace}, {len(reading.staircase.steps)} times"
        if reading.staircase
        else f"{pace} for {steps}"
    )
    detail = since_text(growth)
    at = ""
    if reading.lines:
        at = f", allocated at {place_text(reading.lines[0].file, reading.lines[0].line)}"
        detail += " What keeps it is still searched for."
    elif reading.is_asked:
        detail += " A look at the blocks did not tell what stays."
    if reading.forecast is not None:
        detail += f" If it goes on: {reading.forecast.words.lower()}"
    return Finding(
        KIND,
        severity,
        fitting(
            f"Memory grew {how}{at}. Not yet clear whether it comes back.",
            f"Memory grew {pace}{at}. Not yet clear whether it comes back.",
            f"Memory grew {pace}{at}.",
            f"Memory grew {pace}. Not yet clear whether it comes back.",
        ),
        growth_evidence(reading, growth),
        0.6 if growth.adds_blocks else 0.4,
        culprits=reading.lines,
        detail=detail,
        stage="suspected",
        since_step=growth.since_step,
    )


def _suspicion(reading: GrowthReading, growth: Growth) -> Severity:
    """A suspicion is only worth knowing, unless it has eaten much and the end is in sight."""
    forecast = reading.forecast
    if forecast is None or not _is_much(growth, forecast):
        return "info"
    if forecast.late_s > _NEAR_S:
        return "info"
    return "critical" if forecast.late_s < _URGENT_S else "warning"


def _is_much(growth: Growth, forecast: Forecast) -> bool:
    return growth.grown_bytes >= _MUCH * forecast.limit_bytes


def _confirmed(reading: GrowthReading, growth: Growth, verdict: GrowthVerdict) -> Finding:
    forecast = reading.forecast
    evidence = growth_evidence(reading, growth)
    evidence |= {
        "title": title_of(verdict),
        "share": round(verdict.share, 2),
        "holder": verdict.holder,
    }
    severity: Severity = "warning"
    if forecast is not None and (_is_much(growth, forecast) or forecast.late_s < _NEAR_S):
        severity = "critical"
    return Finding(
        KIND,
        severity,
        _sentence(reading, growth, verdict),
        evidence,
        _confidence(verdict),
        culprits=_culprits(verdict, growth),
        remedies=remedies_of(verdict, int(growth.grown_bytes * verdict.held_share)),
        detail=_detail(growth, verdict),
        subject=verdict.place or holder_name(verdict.held_by),
        since_step=growth.since_step,
    )


def _sentence(reading: GrowthReading, growth: Growth, verdict: GrowthVerdict) -> str:
    pace = pace_text(growth, reading.staircase)
    name = holder_name(verdict.held_by)
    mostly = " mostly" if verdict.held_share < _NEARLY_ALL else ""
    place = f"{mostly} at {verdict.place}" if verdict.place else ""
    if reading.forecast is not None:
        return fitting(
            f"Leaking {pace}{place}. {reading.forecast.words}",
            f"Leaking {pace}. {reading.forecast.words}",
        )
    held = f", held by {name}" if name else ""
    return fitting(f"Leaking {pace}{place}{held}.", f"Leaking {pace}{place}.", f"Leaking {pace}.")


def _detail(growth: Growth, verdict: GrowthVerdict) -> str:
    words = [since_text(growth)]
    name = holder_name(verdict.held_by)
    tensors = next((c.tensors[0] for c in verdict.culprits if c.tensors), "")
    if verdict.holder == "autograd_graph" and name:
        words.append(f"{name} keeps the graph of every step.")
    elif verdict.holder == "cpp":
        words.append("No Python object refers to it: it is held from C++.")
    elif name:
        words.append(f"{name} keeps {tensors or 'it'}.")
    if verdict.is_one_tensor:
        words.append("One tensor becomes longer and longer.")
    if verdict.bound is not None and verdict.bound.is_of_calls:
        filled, most = count_text(verdict.bound.filled), count_text(verdict.bound.most)
        words.append(f"It keeps {filled} calls, of {most} at most.")
    return " ".join(words)


def _culprits(verdict: GrowthVerdict, growth: Growth) -> tuple[Culprit, ...]:
    """With the pace of the whole growth: a few steps of looks know it less well."""
    total = sum(c.bytes_per_step or 0.0 for c in verdict.culprits[:1])
    if not total or growth.period_steps == 1:
        return verdict.culprits
    return tuple(
        replace(culprit, bytes_per_step=growth.slope_bytes) for culprit in verdict.culprits
    )


def _confidence(verdict: GrowthVerdict) -> float:
    confidence = 0.75 + 0.2 * verdict.share
    if verdict.holder in ("unknown", "cpp"):
        confidence -= 0.1
    return round(confidence, 2)
