"""A recording that goes on and on, with what it costs where that can be told."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.made_ranks import made_rank, prefixes
from vramscope_analysis.diagnosis.recording_overhead import recording_overhead
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.run_evidence import RankEvidence

COUNT = 400


def job(who: list[int], slow_us: int = 130_000) -> RankEvidence:
    jitter = np.random.default_rng(0).integers(-2000, 2000, len(who))
    columns: dict[str, Any] = {
        "step.recording": who,
        "step.duration_us": [
            (slow_us if code else 100_000) + int(noise)
            for code, noise in zip(who, jitter, strict=True)
        ],
    }
    return made_rank(len(who), columns=columns)


def test_a_recording_of_the_job_that_makes_steps_slower_is_a_warning() -> None:
    (finding,) = recording_overhead(job([0] * 100 + [2] * 60))
    assert finding.summary.startswith(
        "Memory history is recorded by the job for 60 steps; steps take "
    )
    assert (finding.severity, finding.since_step) == ("warning", 101)
    assert abs(finding.evidence["slower_share"] - 0.3) < 0.02
    assert finding.remedies[0].fix == "torch.cuda.memory._record_memory_history(enabled=None)"


def test_from_the_first_step_on_the_cost_is_not_known_and_said_so() -> None:
    (finding,) = recording_overhead(job([2] * COUNT))
    assert (finding.severity, finding.evidence["slower_share"]) == ("info", None)
    assert finding.summary == "Memory history is recorded by the job for 400 steps."
    assert finding.detail.startswith("What it costs is not known")


def test_ours_can_be_stopped_by_a_command() -> None:
    (finding,) = recording_overhead(job([0] * 100 + [1] * 1000))
    assert (finding.subject, finding.remedies[0].command) == ("vramscope", "history_stop")


def test_a_window_is_no_finding_and_what_is_over_is_over() -> None:
    window = [0] * 100 + [1] * 400 + [0] * 100
    assert [recording_overhead(each) for each in prefixes(job(window), 5)] == [[]] * 120
    short = [0] * 100 + [2] * 40
    assert [recording_overhead(each) for each in prefixes(job(short))] == [[]] * 140
    assert recording_overhead(job([2] * 300 + [0] * 2)) == []


def test_a_recording_that_costs_nothing_is_told_only_when_it_is_long() -> None:
    rank = job([0] * 100 + [2] * 300, slow_us=100_500)
    found = [bool(recording_overhead(each)) for each in prefixes(rank)]
    assert found.index(True) == 299
    (finding,) = recording_overhead(rank)
    assert (finding.severity, finding.evidence["slower_share"]) == ("info", 0.0)


def test_unknown_says_nothing() -> None:
    assert recording_overhead(job([UNKNOWN] * COUNT)) == []
    assert recording_overhead(made_rank(COUNT, columns={})) == []
    assert recording_overhead(made_rank(0, columns={})) == []
