"""All judges of growth together: whatever comes they answer, and alarm only where something is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.step_floors import BASE, BLOCKS, CLEAN, GIB, MIB, clean, prefixes, rank_of
from vramscope_analysis.diagnosis.cycle_growth import cycle_growth
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.near_oom import near_oom
from vramscope_analysis.diagnosis.questions import questions
from vramscope_analysis.diagnosis.retained_exception import retained_exception
from vramscope_analysis.diagnosis.retention import retention
from vramscope_analysis.diagnosis.workspace import workspace
from vramscope_analysis.evidence.columns import UNKNOWN, Rows
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence, Stretch

JUDGES = (leak, cycle_growth, retained_exception, retention, near_oom)
NAMES = (
    "allocated_bytes.all.current",
    "allocation.all.current",
    "step.peak_allocated_bytes",
    "step.allocated_volume_bytes",
    "inactive_split_bytes.all.current",
    "category.parameters_bytes",
    "category.gradients_bytes",
    "category.optimizer_state_bytes",
    "category.buffers_bytes",
)
SAMPLES = ("allocated_bytes.all.current", "gc.collected", "gc.full_collections", "gc.full_pause_us")


def judged(rank: RankEvidence) -> list[Finding]:
    run = RunEvidence("r", 0, ranks=(rank,))
    questions(run)
    return [*(finding for judge in JUDGES for finding in judge(rank)), *workspace(run)]


VALUES = st.one_of(
    st.integers(0, 1 << 40),
    st.sampled_from([UNKNOWN, 0, -1, 1, (1 << 63) - 1, -(1 << 62)]),
)


@st.composite
def column(draw: st.DrawFn, rows: int, rise: int) -> NDArray[np.int64]:
    """A rise in each step or in some, teeth, a jump, or level ground; with anything put into it."""
    number = np.arange(rows, dtype=np.int64)
    shape = draw(st.sampled_from(["rise", "stairs", "teeth", "jump", "level"]))
    period = draw(st.integers(2, 60))
    values = {
        "rise": number,
        "stairs": number // period * period,
        "teeth": number % period,
        "jump": (number > period) * 100,
        "level": 0 * number,
    }[shape] * rise + (1 << 28)
    places = st.integers(0, max(rows - 1, 0))
    for place, value in draw(st.dictionaries(places, VALUES, max_size=3)).items():
        values[place : place + 1] = value
    return values


@st.composite
def ranks(draw: st.DrawFn) -> RankEvidence:
    rows, samples = draw(st.integers(0, 250)), draw(st.integers(0, 60))
    rises = st.sampled_from([1, 1 << 16, 1 << 21, 1 << 33])
    named = {name: draw(column(rows, draw(rises))) for name in draw(some(NAMES))}
    sampled = {name: draw(column(samples, draw(rises))) for name in draw(some(SAMPLES))}
    number = np.arange(rows, dtype=np.int64) + draw(st.sampled_from([0, 1, 1 << 40]))
    if draw(st.integers(0, 9)) == 0:
        number[rows // 2 :] = np.arange(rows - rows // 2)
    pace_ns = draw(st.sampled_from([0, 10**6, 10**8, 10**12]))
    at_ns = np.arange(samples, dtype=np.int64) * draw(st.sampled_from([1, 10**8]))
    starts = sorted(draw(st.lists(st.integers(0, 10**12), max_size=4)))
    return RankEvidence(
        0,
        steps=Rows(np.arange(rows, dtype=np.int64) * pace_ns, named, number),
        samples=Rows(at_ns, sampled, np.arange(samples, dtype=np.int64)),
        stretches=tuple(Stretch("eval", each, each + 5, None) for each in starts),
        total_bytes=draw(st.none() | st.integers(0, 1 << 40)),
        limit_bytes=draw(st.none() | st.integers(0, 1 << 40)),
        growth=draw(st.none() | reports()),
    )


def some(names: tuple[str, ...]) -> st.SearchStrategy[set[str]]:
    """The floor nearly always, and some of the others."""
    others = st.sets(st.sampled_from(names[1:]))
    return st.builds(
        lambda more, without: more if without == 0 else {names[0], *more}, others, st.integers(0, 9)
    )


@st.composite
def groups(draw: st.DrawFn) -> GrowthGroup:
    kinds = ["attribute", "garbage", "exception", "ipc", "cpp", "lru_cache", "hook", "new", ""]
    holders = [
        Holder(
            draw(st.sampled_from(kinds)),
            tuple(draw(st.lists(st.text(max_size=8), max_size=3))),
            draw(st.none() | st.just(Frame("/job/a.py", 3))),
            draw(st.integers(-1, 9)),
            stored_at=draw(st.none() | st.just(Frame("", 0))),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    looks = draw(st.lists(st.integers(-5, 1 << 33), max_size=5))
    counts = draw(st.lists(st.integers(-5, 99), max_size=5))
    return GrowthGroup(
        tuple(draw(st.lists(st.just(Frame("/job/train.py", 5)), max_size=2))),
        bytes=draw(st.integers(-5, 1 << 40)),
        bytes_at_looks=tuple(sorted(looks) if draw(st.booleans()) else looks),
        counts_at_looks=tuple(sorted(counts)),
        holders=tuple(holders),
        garbage_bytes=draw(st.integers(-1, 1 << 40)),
        category=draw(st.sampled_from(["", "parameters"])),
    )


@st.composite
def reports(draw: st.DrawFn) -> GrowthReport:
    steps = sorted(draw(st.lists(st.integers(0, 300), max_size=5)))
    live = draw(st.lists(st.integers(-5, 1 << 34), max_size=5))
    return GrowthReport(
        steps=tuple(steps),
        live_bytes_at_looks=tuple(sorted(live)),
        groups=tuple(draw(st.lists(groups(), max_size=3))),
        held=tuple(draw(st.lists(groups(), max_size=2))),
    )


@given(ranks())
@settings(max_examples=80, deadline=None)
def test_whatever_comes_is_answered(rank: RankEvidence) -> None:
    for finding in judged(rank):
        assert 0 < len(finding.summary) <= 110
        assert 0 <= finding.confidence <= 1


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("seed", [3])
def test_at_no_moment_a_job_that_is_well_is_alarmed_about(name: str, seed: int) -> None:
    rank = replace(clean(name, seed=seed, steps=700), total_bytes=80 * GIB)
    for known in prefixes(rank, every=25):
        assert all(finding.severity == "info" for finding in judged(known))


@pytest.mark.parametrize("seed", range(6))
def test_memory_that_wanders_is_not_alarmed_about(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(0, 4, 800))
    floor = BASE + (walk - walk.min()) * MIB
    blocks = BLOCKS + np.cumsum(rng.integers(-1, 2, 800)) + 900
    rank = rank_of(
        floor,
        blocks,
        columns={"step.peak_allocated_bytes": floor + 200 * MIB},
        total_bytes=16 * GIB,
    )
    for known in prefixes(rank, every=25):
        assert all(finding.severity == "info" for finding in judged(known))
