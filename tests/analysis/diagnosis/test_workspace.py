"""A workspace is named where nothing else can be behind a rise of its size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.diagnosis.test_held_memory import held
from tests.support.step_floors import BASE, BLOCKS, MIB, held_by, rank_of, report_of, steps_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.workspace import workspace
from vramscope_analysis.evidence.growth_report import GrowthGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

N = steps_of(300)
SIZE = 8_519_680


def with_rises(*at: int, size: int = SIZE, groups: tuple[GrowthGroup, ...] = ()) -> RankEvidence:
    count = sum((row <= N).astype(int) for row in at) + 0 * N
    report = report_of(steps=(270, 271, 272), live=[1, 1, 1], held=groups)
    return rank_of(BASE + count * size, BLOCKS + count, growth=report)


def found(rank: RankEvidence, *, emulated: bool = False) -> list[Finding]:
    return workspace(RunEvidence("r", 0, ranks=(rank,), emulated=emulated))


def test_it_is_named_and_is_no_leak() -> None:
    rank = with_rises(120)
    (finding,) = found(rank)
    assert finding.summary == "8.1 MiB came at step 121: 1 cuBLAS workspace, kept for reuse."
    assert (finding.severity, finding.ranks) == ("info", (0,))
    assert "empty_cache does not free it" in finding.remedies[0].why
    assert leak(rank) == []


def test_one_for_each_stream_is_told_together() -> None:
    (finding,) = found(with_rises(100, 190, size=32 * MIB))
    assert finding.summary == "64.0 MiB came at step 101, 191: 2 cuBLAS workspaces, kept for reuse."


def test_a_tensor_of_that_size_that_somebody_holds_is_none() -> None:
    assert found(with_rises(120, groups=(held(8 * MIB, held_by("local", "table")),))) == []


@pytest.mark.parametrize(
    "rank",
    [
        with_rises(20, 70, 120, 170, 220),
        replace(with_rises(120), growth=None),
        replace(with_rises(120), growth=report_of(steps=(60, 61, 62), live=[1, 1, 1])),
        with_rises(120, size=24 * MIB),
        with_rises(),
    ],
)
def test_what_comes_again_and_again_or_was_not_looked_at_is_none(rank: RankEvidence) -> None:
    assert found(rank) == []


def test_the_model_of_the_allocator_has_none() -> None:
    assert found(with_rises(120), emulated=True) == []
