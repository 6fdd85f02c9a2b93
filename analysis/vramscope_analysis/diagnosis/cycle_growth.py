"""The finding ``cycle_growth``: reference cycles hold memory until Python collects them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Severity
from vramscope_analysis.diagnosis.growth_evidence import growth_evidence, since_text
from vramscope_analysis.diagnosis.growth_reading import GrowthReading, growth_reading
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.holder_remedies import cycle_remedies
from vramscope_analysis.diagnosis.sawtooth import Sawtooth, last_collection_step
from vramscope_analysis.diagnosis.words import count_text, fitting, size_text
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "cycle_growth"

_MANY_FALLS: Final = 3
_RARE: Final = 0.001
_MUCH_OF_LIMIT: Final = 0.05
_MUCH_OF_FLOOR: Final = 0.2


def cycle_growth(rank: RankEvidence) -> list[Finding]:
    """Judge whether garbage that waits for the collector takes memory.

    Args:
        rank: what is known of it.
    """
    reading = growth_reading(rank)
    verdict = reading.garbage
    if verdict is None and reading.sawtooth is None:
        return []
    held = _held_bytes(reading, verdict)
    # That something else is let go of when the job itself collects cannot be told from outside.
    is_sure = verdict is not None or _is_plain(reading.sawtooth)
    severity = _severity(rank, reading, held) if is_sure else "info"
    name = _cycle_text(verdict)
    return [
        Finding(
            KIND,
            severity,
            _sentence(rank, reading, held, verdict) if is_sure else _question(held),
            _evidence(reading, verdict, held),
            _confidence(reading.sawtooth, verdict),
            culprits=() if verdict is None else verdict.culprits,
            remedies=cycle_remedies(int(held), _pause_ms(rank.samples)),
            detail=_detail(reading, name, is_sure=is_sure),
            subject="" if verdict is None else verdict.place,
            stage="confirmed" if is_sure else "suspected",
            since_step=_since(reading),
        )
    ]


def _is_plain(sawtooth: Sawtooth | None) -> bool:
    """Whether its course leaves no doubt."""
    if sawtooth is None or not sawtooth.is_automatic:
        return False
    return len(sawtooth.falls) >= _MANY_FALLS and sawtooth.chance <= _RARE


def _question(held: float) -> str:
    size = size_text(held)
    return f"Up to {size} comes back only when Python collects garbage: reference cycles?"


def _held_bytes(reading: GrowthReading, verdict: GrowthVerdict | None) -> float:
    """The most that has waited at one time."""
    held = 0.0 if verdict is None else float(verdict.bytes)
    if reading.sawtooth is not None:
        held = max(reading.sawtooth.top_bytes, reading.sawtooth.held_bytes)
    if reading.growth is not None and verdict is not None:
        held = max(held, reading.growth.grown_bytes)
    return held


def _severity(rank: RankEvidence, reading: GrowthReading, held: float) -> Severity:
    limit = allocator_limit(rank)
    base = float(reading.floors.allocated.min()) if len(reading.floors) else 0.0
    is_much = held >= _MUCH_OF_FLOOR * base or (
        limit is not None and held >= _MUCH_OF_LIMIT * limit
    )
    return "warning" if is_much else "info"


def _sentence(
    rank: RankEvidence, reading: GrowthReading, held: float, verdict: GrowthVerdict | None
) -> str:
    place = f" at {verdict.place}" if verdict is not None and verdict.place else ""
    sawtooth = reading.sawtooth
    size = size_text(held)
    if sawtooth is not None and sawtooth.period_steps:
        often = f"every {count_text(sawtooth.period_steps, 'step')} or so"
        return fitting(
            f"Reference cycles{place} hold up to {size} until Python collects them, {often}.",
            f"Reference cycles hold up to {size} until Python collects them, {often}.",
        )
    last = last_collection_step(rank.samples)
    ago = None if last is None or not len(reading.floors) else int(reading.floors.step[-1]) - last
    tail = f"; it last did {count_text(ago, 'step')} ago" if ago is not None and ago >= 0 else ""
    return fitting(
        f"Reference cycles{place} hold {size} until Python collects them{tail}.",
        f"Reference cycles hold {size} until Python collects them{tail}.",
    )


def _detail(reading: GrowthReading, cycle: str, *, is_sure: bool) -> str:
    words: list[str] = []
    if reading.sawtooth is not None:
        falls = len(reading.sawtooth.falls)
        times = "once" if falls == 1 else f"{count_text(falls)} times"
        words.append(f"Memory fell {times}, as Python's collector freed objects in cycles.")
    elif reading.growth is not None:
        words.append(since_text(reading.growth))
    if cycle:
        words.append(f"The cycle: {cycle}.")
    if is_sure:
        words.append("It is no leak: breaking the cycle frees it at once.")
    return " ".join(words)


def _cycle_text(verdict: GrowthVerdict | None) -> str:
    return "" if verdict is None else " → ".join(verdict.cycle)


def _evidence(reading: GrowthReading, verdict: GrowthVerdict | None, held: float) -> dict[str, Any]:
    evidence: dict[str, Any] = {"title": "Reference cycles", "held_bytes": int(held)}
    if reading.growth is not None:
        evidence |= growth_evidence(reading, reading.growth)
        evidence.pop("forecast", None)  # a collection comes in between
    if reading.sawtooth is not None:
        evidence |= {
            "falls": list(reading.sawtooth.falls[-32:]),
            "chance": reading.sawtooth.chance,
            "period_steps": reading.sawtooth.period_steps,
        }
    if verdict is not None and verdict.cycle:
        evidence["cycle"] = list(verdict.cycle)
    return evidence


def _since(reading: GrowthReading) -> int | None:
    if reading.sawtooth is not None:
        return reading.sawtooth.falls[0]
    return None if reading.growth is None else reading.growth.since_step


def _confidence(sawtooth: Sawtooth | None, verdict: GrowthVerdict | None) -> float:
    if verdict is not None:
        return 0.95
    return 0.0 if sawtooth is None else round(1 - max(sawtooth.chance, 0.05), 2)


def _pause_ms(samples: Rows) -> float | None:
    """How long a full collection takes in this job."""
    count, pause_us = samples.numbers("gc.full_collections"), samples.numbers("gc.full_pause_us")
    known = np.flatnonzero(~np.isnan(count) & ~np.isnan(pause_us))
    if len(known) < 2:
        return None
    collections = count[known[-1]] - count[known[0]]
    if collections <= 0:
        return None
    return float((pause_us[known[-1]] - pause_us[known[0]]) / collections / 1e3)
