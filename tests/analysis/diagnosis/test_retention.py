"""What is kept without growing is told with its holder, and is no alarm by itself."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_evaluation_ramp import evaluated
from tests.analysis.diagnosis.test_held_memory import STATE, held, risen
from tests.support.step_floors import (
    BASE,
    BLOCKS,
    CLEAN,
    MIB,
    clean,
    group_of,
    held_by,
    leaking,
    prefixes,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.retention import retention
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.growth_report import Frame
from vramscope_analysis.evidence.run_evidence import RankEvidence


def one(rank: RankEvidence) -> Finding:
    (finding,) = retention(rank)
    assert len(finding.summary) <= MAX_SENTENCE
    return finding


def test_a_state_that_was_loaded_and_kept_is_worth_knowing() -> None:
    finding = one(risen(STATE))
    assert (finding.kind, finding.severity, finding.subject) == ("retention", "info", "state")
    assert finding.summary == "180 MiB have stayed since step 121, held by state."
    assert finding.remedies[0].fix == "del state"
    assert finding.remedies[1].fix == 'torch.load(path, map_location="cpu")'
    assert "It does not grow." in finding.detail


def test_the_line_is_the_one_that_stores_and_never_the_one_that_runs() -> None:
    running = Frame("/job/resume.py", 46, "main")
    stored = Frame("/job/resume.py", 41, "main")
    holder = replace(held_by("local", "state", "dict of 3"), frame=running)
    assert one(risen(held(180 * MIB, holder))).culprits[0].line == 0
    finding = one(risen(held(180 * MIB, replace(holder, stored_at=stored))))
    assert finding.culprits[0].line == 41
    assert finding.summary == "180 MiB have stayed since step 121, held by state, resume.py:41."


def test_what_a_leak_has_told_is_not_told_again() -> None:
    risen_times = steps_of(300) // 60
    report = report_of(steps=(270, 271, 272), live=[1, 1, 1], held=[STATE])
    rank = rank_of(BASE + risen_times * 192 * MIB, BLOCKS + risen_times, growth=report)
    assert len(leak(rank)) == 1
    assert retention(rank) == []


def test_a_model_that_nobody_trains_any_more_is_to_be_let_go_of_where_it_is_held() -> None:
    model = held(150 * MIB, held_by("local", "model1"), "parameters")
    finding = one(risen(model))
    assert "takes away only its own name" in finding.remedies[0].why
    assert len(finding.remedies) == 1
    assert "No optimizer has stepped on it since." in finding.evidence["facts"]


def test_memory_shared_with_another_process_is_named_so() -> None:
    rank = replace(leaking(MIB), growth=report_of(group_of(held_by("ipc"))))
    finding = one(rank)
    assert finding.summary == (
        "Another process keeps 1.0 MiB per step at train.py:56 alive: memory shared by CUDA IPC."
    )
    assert finding.remedies[0].fix == "torch.cuda.ipc_collect()"
    assert leak(rank) == []


def test_what_builds_up_in_evaluations_is_among_it() -> None:
    assert [finding.subject for finding in retention(evaluated(named=True))] == ["eval"]


def test_jobs_that_are_well_keep_nothing() -> None:
    for name in CLEAN:
        for known in prefixes(clean(name), every=20):
            assert retention(known) == []
