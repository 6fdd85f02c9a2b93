"""Growth in words and numbers, the same for every kind of finding that is about it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.growth_reading import GrowthReading
from vramscope_analysis.diagnosis.staircase import Staircase
from vramscope_analysis.diagnosis.trend import Growth
from vramscope_analysis.diagnosis.words import count_text, rate_text, size_text

_NOUNS: Final = {"eval": "evaluation", "checkpoint": "checkpoint"}


def pace_text(growth: Growth, staircase: Staircase | None) -> str:
    """How fast: ``3.1 MiB per step``, ``12 MiB per evaluation``, ``12 MiB every 60 steps``."""
    if staircase is None:
        return rate_text(growth.slope_bytes)
    noun = _NOUNS.get(staircase.at, "")
    if noun:
        return rate_text(staircase.rise_bytes, noun)
    return f"{size_text(staircase.rise_bytes)} every {count_text(growth.period_steps, 'step')}"


def growth_evidence(reading: GrowthReading, growth: Growth) -> dict[str, Any]:
    """The numbers behind any finding of growth, as the page draws them."""
    evidence: dict[str, Any] = {
        "series": reading.series,
        "since_step": growth.since_step,
        "until_step": growth.until_step,
        "slope_bytes_per_step": round(growth.slope_bytes, 1),
        "slope_error_bytes_per_step": round(growth.slope_error_bytes, 1),
        "grown_bytes": int(growth.grown_bytes),
        "base_bytes": int(growth.base_bytes),
        "period_steps": growth.period_steps,
        "facts": _facts(reading, growth),
    }
    if growth.blocks_per_step:
        evidence["blocks_per_step"] = round(growth.blocks_per_step, 3)
    if reading.staircase is not None:
        evidence["rises"] = list(reading.staircase.steps)
        evidence["at"] = reading.staircase.at
    if reading.forecast is not None:
        evidence["forecast"] = reading.forecast.evidence()
    return evidence


def _facts(reading: GrowthReading, growth: Growth) -> list[str]:
    """Short sentences that say why it is sure."""
    facts: list[str] = []
    if reading.staircase is not None:
        rises = len(reading.staircase.steps)
        facts.append(f"{rises} equal rises, and level ground between them.")
    else:
        allocated = reading.floors.allocated[growth.first_row : growth.last_row + 1]
        rose = int((np.diff(allocated) > 0).sum())
        steps = count_text(len(allocated) - 1, "step")
        facts.append(f"{count_text(rose)} of {steps} ended higher than the one before.")
    verdict = reading.verdict
    if verdict is not None and verdict.groups:
        group = verdict.groups[0]
        if group.counts_at_looks and not verdict.is_one_tensor:
            counts = ", ".join(count_text(number) for number in group.counts_at_looks)
            looks = count_text(len(group.counts_at_looks), "look")
            facts.append(f"Its tensors at {looks}: {counts}.")
    return facts


def since_text(growth: Growth) -> str:
    """Since when, and how much: the beginning of the second sentence."""
    return f"Since step {count_text(growth.since_step)}: {size_text(growth.grown_bytes)} so far."
