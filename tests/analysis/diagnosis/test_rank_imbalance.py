"""One rank that is fuller, and what explains it; ranks that differ by design are left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.made_ranks import GIB, MIB, made_rank
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.rank_imbalance import rank_imbalance
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

STEPS = 80


def rank(number: int, needed: int | list[int], **more: Any) -> RankEvidence:
    peaks = [needed] * STEPS if isinstance(needed, int) else needed
    columns: dict[str, Any] = {
        "step.peak_active_bytes": peaks,
        "step.peak_reserved_bytes": [peak + 2 * GIB for peak in peaks],
        "category.parameters_bytes": 4 * GIB,
        "category.gradients_bytes": 4 * GIB,
        "category.optimizer_state_bytes": 8 * GIB,
        "category.buffers_bytes": 0,
        "num_alloc_retries": 0,
    }
    return made_rank(STEPS, rank=number, columns=columns | more.pop("changes", {}), **more)


def judged(ranks: list[RankEvidence]) -> list[Finding]:
    return rank_imbalance(RunEvidence("run", 0, ranks=tuple(ranks), world_size=len(ranks)))


def alike(count: int, needed: int = 70 * GIB) -> list[RankEvidence]:
    return [rank(number, needed + number % 5 * 512 * MIB) for number in range(count)]


def test_the_one_that_fills_up_is_named_with_what_explains_it() -> None:
    ranks = alike(64)
    ranks[41] = rank(41, 78 * GIB + 614 * MIB)
    (finding,) = judged(ranks)
    assert finding.summary == (
        "Rank 41 of 64 is filling up: 1.4 GiB left, 63 others have 8.0 to 10.0 GiB."
    )
    assert (finding.severity, finding.ranks, finding.subject) == ("warning", (41,), "memory")
    assert finding.evidence["cause"] == "activations"
    assert "are activations." in finding.detail
    assert finding.remedies[0].action == "spread long samples evenly over the ranks"


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"category.optimizer_state_bytes": 24 * GIB}, "optimizer state"),
        ({"category.parameters_bytes": 20 * GIB}, "parameters"),
    ],
)
def test_the_part_that_differs_is_the_cause(changes: dict[str, int], cause: str) -> None:
    ranks = alike(8, 40 * GIB)
    ranks[2] = rank(2, 56 * GIB, changes=changes)
    (finding,) = judged(ranks)
    assert finding.evidence["cause"] == cause
    assert (finding.severity, finding.evidence["ranks"]) == ("info", [2])
    assert finding.summary.startswith("Rank 2 of 8 uses 15.")


def test_memory_of_others_on_its_device_counts_as_such() -> None:
    processes = ({"pid": 9, "bytes": 12 * GIB, "own": False},)
    nobody = ({"pid": 8, "bytes": 0, "own": False},)
    ranks = [
        rank(number, 40 * GIB, processes=processes if number == 5 else nobody)
        for number in range(8)
    ]
    (finding,) = judged(ranks)
    assert (finding.ranks, finding.evidence["cause"]) == ((5,), "other processes")


def test_two_ranks_have_no_spread_and_need_a_larger_difference() -> None:
    assert judged([rank(0, 40 * GIB), rank(1, 46 * GIB)]) == []
    (finding,) = judged([rank(0, 40 * GIB), rank(1, 52 * GIB)])
    assert finding.summary == "Rank 1 of 2 uses 12.0 GiB more at its peaks than the others."


def test_ranks_that_have_too_few_steps_yet_are_counted_too() -> None:
    late = made_rank(5, rank=3, columns={"step.peak_active_bytes": 40 * GIB})
    (finding,) = judged([*(rank(n, 40 * GIB) for n in range(2)), rank(2, 60 * GIB), late])
    assert finding.summary.startswith("Rank 2 of 4 uses ")


def test_ranks_that_differ_by_design_are_left_alone() -> None:
    pipeline = [rank(number, (20 + 6 * number) * GIB) for number in range(8)]
    assert judged(pipeline) == []
    stages = [rank(number, (60 if number % 2 else 30) * GIB) for number in range(8)]
    assert judged(stages) == []
    assert judged(alike(8)) == []


def test_a_difference_that_comes_and_goes_is_none() -> None:
    ranks = alike(8, 40 * GIB)
    ranks[3] = rank(3, [40 * GIB] * 55 + [60 * GIB] * 25)
    assert judged(ranks) == []
    rng = np.random.default_rng(3)
    varying = [
        rank(number, [int(size) for size in rng.uniform(30, 60, STEPS) * GIB])
        for number in range(8)
    ]
    assert judged(varying) == []


def test_nothing_is_said_too_early_of_one_rank_or_of_unlike_devices() -> None:
    assert judged([rank(0, 70 * GIB)]) == []
    early = [
        made_rank(30, rank=number, columns={"step.peak_active_bytes": (20 + 20 * number) * GIB})
        for number in range(4)
    ]
    assert judged(early) == []
    sizes = [rank(0, 20 * GIB, total_bytes=24 * GIB), *(rank(n, 60 * GIB) for n in range(1, 4))]
    assert judged(sizes) == []


def test_a_rank_whose_cache_is_flushed_holds_the_others_up() -> None:
    flushed = {"num_alloc_retries": [step // 5 for step in range(STEPS)]}
    ranks = alike(8, 40 * GIB)
    ranks[3] = rank(3, 40 * GIB, changes=flushed)
    (finding,) = judged(ranks)
    assert finding.summary == "Rank 3 of 8 flushed its cache 9 times; the others wait for it."
    assert (finding.subject, finding.ranks, finding.severity) == ("flushes", (3,), "warning")
    everybody = [rank(number, 40 * GIB, changes=flushed) for number in range(8)]
    assert judged(everybody) == []
