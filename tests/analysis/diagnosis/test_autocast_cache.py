"""Copies that autocast keeps are told where they are a part of each step, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.step_floors import BASE, MIB, rank_of
from vramscope_analysis.diagnosis.autocast_cache import LEAST_LOOKS, RECENT_ROWS, autocast_cache
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.evidence.columns import UNKNOWN

ROWS = 160
LOOKED_AT = np.arange(ROWS) % 8 == 0


def judged(cache: Any, peak: Any = BASE + 100 * MIB) -> list[Finding]:
    columns = {
        "step.autocast_cache_bytes": np.where(LOOKED_AT, cache, UNKNOWN),
        "step.peak_allocated_bytes": np.broadcast_to(peak, ROWS),
    }
    return autocast_cache(rank_of([BASE] * ROWS, columns=columns))


def test_copies_of_each_step_are_told_with_what_helps() -> None:
    (finding,) = judged(64 * MIB)
    assert (finding.kind, finding.severity, finding.subject) == ("retention", "info", "autocast")
    assert finding.summary == (
        "In each step autocast keeps 64.0 MiB of copies of weights until its region ends."
    )
    assert "cache_enabled=False" in finding.remedies[0].fix
    assert finding.evidence["held_bytes"] == 64 * MIB
    for word in ("leak", "activations", "autograd"):
        assert word not in str(finding)


@pytest.mark.parametrize(
    "cache",
    [
        0,
        UNKNOWN,
        4 * MIB,
        20 * MIB,  # little of what a step needs
        np.where(np.arange(ROWS) % 16 == 0, 64 * MIB, 0),  # evaluations
        np.where(np.arange(ROWS) < ROWS - RECENT_ROWS // 2, 64 * MIB, 0),  # it is over
    ],
)
def test_what_is_little_or_seldom_is_not(cache: Any) -> None:
    assert judged(cache) == []


def test_a_few_looks_are_not_enough() -> None:
    few = np.where(np.arange(ROWS) < ROWS - 8 * (LEAST_LOOKS - 1), UNKNOWN, 64 * MIB)
    assert judged(few) == []


def test_without_peaks_nobody_knows_whether_it_is_much() -> None:
    assert judged(64 * MIB, UNKNOWN) == []
