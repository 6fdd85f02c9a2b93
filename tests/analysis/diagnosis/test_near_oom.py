"""Peaks that grow without a leak are only spoken of where little is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    CLEAN,
    GIB,
    MIB,
    at,
    clean,
    leaking,
    prefixes,
    rank_of,
    steps_of,
)
from vramscope_analysis.diagnosis.near_oom import near_oom
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.run_evidence import RankEvidence


def curriculum(limit: int, *, steps: int = 1200) -> RankEvidence:
    """Half a MiB more in each step's peak; the floor stays."""
    number = steps_of(steps)
    peak = BASE + 200 * MIB + number * MIB // 2
    return rank_of(
        BASE + 0 * number,
        BLOCKS + 0 * number,
        columns={"step.peak_allocated_bytes": peak},
        total_bytes=limit,
    )


def test_near_the_limit_the_end_is_forecast() -> None:
    rank = at(curriculum(GIB + 200 * MIB), 900)  # full at step 1024
    (finding,) = near_oom(rank)
    assert (finding.kind, finding.subject, finding.severity) == ("near_oom", "growth", "critical")
    assert finding.summary == (
        "Out of memory in 1 to 2 seconds, if the peak goes on growing by 0.5 MiB per step."
    )
    assert len(finding.summary) <= MAX_SENTENCE
    forecast = finding.evidence["forecast"]
    assert 900 + forecast["early_steps"] <= 1024 <= 900 + forecast["late_steps"]
    assert "leak" in finding.evidence["facts"][0]


def test_far_from_it_growing_peaks_are_not_spoken_of() -> None:
    assert all(near_oom(known) == [] for known in prefixes(curriculum(4 * GIB), every=50))


def test_a_leak_has_its_own_forecast() -> None:
    assert near_oom(replace(leaking(MIB), total_bytes=GIB + 160 * MIB)) == []


def test_the_longest_batch_until_now_is_no_growth_that_goes_on() -> None:
    rng = np.random.default_rng(1)
    peak = BASE + np.maximum.accumulate(rng.lognormal(3, 1, 600)).clip(0, 400) * MIB
    rank = rank_of(
        [BASE] * 600, columns={"step.peak_allocated_bytes": peak}, total_bytes=int(peak.max())
    )
    assert all(near_oom(known) == [] for known in prefixes(rank, every=10))


@pytest.mark.parametrize("name", [n for n in CLEAN if n != "longer batches"])
def test_tight_jobs_that_are_well_do_not_end(name: str) -> None:
    rank = clean(name)
    limit = int(rank.steps.numbers("step.peak_allocated_bytes").max()) + 8 * MIB
    for known in prefixes(replace(rank, total_bytes=limit), every=7):
        assert near_oom(known) == []


def test_without_a_limit_or_peaks_nothing_is_known() -> None:
    assert near_oom(replace(curriculum(GIB), total_bytes=None)) == []
    assert near_oom(rank_of([BASE] * 300, total_bytes=BASE)) == []
