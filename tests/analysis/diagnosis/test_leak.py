"""A leak is suspected by its course, confirmed by who holds it, and never said of what is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.step_floors import (
    ACTIVATIONS,
    BASE,
    BLOCKS,
    CLEAN,
    GIB,
    KIB,
    MIB,
    at,
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
from vramscope_analysis.diagnosis.questions import questions
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.growth_report import Frame
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

LIST = held_by("attribute", "T.results", "['acc']", "list of 40")


def one(rank: RankEvidence) -> Finding:
    (finding,) = leak(rank)
    assert len(finding.summary) <= MAX_SENTENCE
    return finding


def test_growth_is_suspected_and_no_more_than_worth_knowing() -> None:
    finding = one(replace(leaking(MIB), total_bytes=80 * GIB))
    assert (finding.stage, finding.severity, finding.subject) == ("suspected", "info", "")
    assert finding.summary == (
        "Memory grew 1.0 MiB per step for 348 steps. Not yet clear whether it comes back."
    )
    assert finding.since_step == finding.evidence["since_step"] == 52


def test_the_line_is_told_while_it_is_searched_for_who_holds_it() -> None:
    young = at(leaking(2 * MIB), 122)
    grown = report_of(group_of(pace=8 * MIB), steps=(66, 70, 74, 78))
    so_far = replace(grown, holders_follow=True)
    finding = one(replace(young, growth_so_far=so_far))
    assert (finding.stage, finding.severity, finding.subject) == ("suspected", "info", "")
    assert finding.summary == (
        "Memory grew 2.0 MiB per step for 70 steps, allocated at train.py:56. "
        "Not yet clear whether it comes back."
    )
    assert [(culprit.line, culprit.held_by) for culprit in finding.culprits] == [(56, ())]
    assert "still searched for" in finding.detail
    # It is no answer: nobody would be told who holds it if the search came to nothing.
    (question,) = questions(RunEvidence("r", 0, ranks=(replace(young, growth_so_far=so_far),)))
    assert question.reason == "memory has grown since step 52"
    # What a line allocated before this growth, or has given back since then, is not behind it.
    old = replace(so_far, steps=(10, 14, 18, 22))
    assert one(replace(young, growth_so_far=old)).culprits == ()
    gone = group_of(pace=80 * MIB)
    much = replace(report_of(gone, steps=(66, 70, 74, 78)), holders_follow=True)
    assert one(replace(young, growth_so_far=much)).culprits == ()


def test_growth_of_some_steps_is_asked_about_before_it_is_told() -> None:
    young = at(leaking(2 * MIB), 80)
    (question,) = questions(RunEvidence("r", 0, ranks=(young,)))
    assert question.reason == "memory has grown since step 52"
    assert leak(young) == []
    # An answer is told at once, and so is a suspicion that is urgent.
    found = report_of(group_of(LIST, pace=8 * MIB), steps=(66, 70, 74, 78))
    assert one(replace(young, growth=found)).stage == "confirmed"
    fast = replace(at(leaking(32 * MIB), 80), total_bytes=BASE + ACTIVATIONS + GIB)
    assert (one(fast).severity, one(fast).stage) == ("critical", "suspected")


def test_a_line_and_a_holder_confirm_it() -> None:
    finding = one(replace(leaking(MIB), growth=report_of(group_of(LIST))))
    assert (finding.stage, finding.severity, finding.subject) == (
        "confirmed",
        "warning",
        "train.py:56",
    )
    assert finding.summary == "Leaking 1.0 MiB per step at train.py:56, held by T.results['acc']."
    assert "T.results['acc'] keeps float32[512, 512]." in finding.detail
    assert finding.culprits[0].held_by == ("T.results", "['acc']", "list of 40")
    assert finding.remedies[0].predicted_bytes == 348 * MIB
    assert finding.evidence["title"] == "Tensors kept in T.results['acc']"
    assert finding.confidence == 0.95


@pytest.mark.parametrize(
    ("rows", "total", "severity"),
    [(130, 8 * GIB, "warning"), (380, 8 * GIB, "critical"), (130, 2 * GIB, "critical")],
)
def test_what_is_far_and_has_hardly_begun_is_a_warning(
    rows: int, total: int, severity: str
) -> None:
    """A store of checkpoints may be full long before memory is; its end is told even so."""
    looks = report_of(group_of(LIST), steps=(81, 91, 101, 111))
    rank = leaking(8 * MIB, steps=400)
    steps = replace(rank.steps, time_ns=rank.steps.time_ns * 1000)
    rank = replace(rank, steps=steps, growth=looks, total_bytes=total)
    finding = one(at(rank, rows))
    assert finding.stage == "confirmed"
    assert "Out of memory in" in finding.summary
    assert finding.severity == severity


def test_of_two_holders_each_has_its_part() -> None:
    """What is freed by the first is not what the second keeps."""
    first = held_by("global", "kept", "list of 40", stored_at=Frame("/job/train.py", 56))
    other = held_by("attribute", "Log.grads", "list of 40", stored_at=Frame("/job/train.py", 57))
    groups = (group_of(first), group_of(other, line=57, pace=2 * MIB))
    finding = one(replace(leaking(MIB), growth=report_of(*groups)))
    assert finding.summary == "Leaking 1.0 MiB per step mostly at train.py:56, held by kept."
    assert finding.remedies[0].predicted_bytes == pytest.approx(348 * MIB * 2 / 3, rel=0.01)
    assert [culprit.line for culprit in finding.culprits] == [56, 57]
    alone = one(replace(leaking(MIB), growth=report_of(group_of(first))))
    assert alone.remedies[0].predicted_bytes == 348 * MIB


def test_with_the_end_in_sight_it_is_critical() -> None:
    report = report_of(group_of(LIST))
    finding = one(replace(leaking(MIB), growth=report, total_bytes=2 * GIB))
    assert finding.severity == "critical"
    assert finding.summary == (
        "Leaking 1.0 MiB per step at train.py:56. Out of memory in 8 to 10 seconds."
    )
    assert finding.evidence["forecast"]["confidence"] >= 0.7


def test_a_mere_suspicion_is_urgent_only_when_much_is_gone_and_the_end_is_near() -> None:
    near = replace(leaking(MIB, steps=800), total_bytes=2 * GIB)
    assert one(near).severity == "critical"
    assert "If it goes on: out of memory in" in one(near).detail
    slower = replace(near.steps, time_ns=near.steps.time_ns * 300)
    assert one(replace(near, steps=slower)).severity == "warning"
    assert one(replace(leaking(MIB, steps=120), total_bytes=2 * GIB)).severity == "info"


def test_a_staircase_is_told_by_its_rises() -> None:
    risen = steps_of(300) // 50
    rank = rank_of(BASE + risen * 12 * MIB, BLOCKS + risen)
    assert one(rank).summary == (
        "Memory grew 12.0 MiB every 50 steps, 5 times. Not yet clear whether it comes back."
    )
    group = group_of(LIST, pace=12 * MIB)
    found = one(replace(rank, growth=report_of(group, steps=(101, 151, 201, 251))))
    assert found.summary.startswith("Leaking 12.0 MiB every 50 steps at train.py:56")
    assert found.evidence["rises"] == [51, 101, 151, 201, 251]


@pytest.mark.parametrize("kind", ["garbage", "exception", "ipc"])
def test_what_turns_out_to_be_of_another_kind_is_no_leak(kind: str) -> None:
    assert leak(replace(leaking(MIB), growth=report_of(group_of(held_by(kind, "x"))))) == []


def test_a_container_with_a_bound_is_none_either() -> None:
    bounded = held_by("attribute", "Agent.replay", "deque(maxlen=10000) of 412")
    assert leak(replace(leaking(MIB), growth=report_of(group_of(bounded)))) == []


def test_a_buffer_by_its_name_may_be_meant_to_fill_up() -> None:
    buffer = held_by("attribute", "Agent.replay_buffer", "list of 400")
    finding = one(replace(leaking(MIB), growth=report_of(group_of(buffer))))
    assert (finding.severity, finding.stage) == ("info", "suspected")
    assert finding.culprits[0].line == 56
    assert finding.summary == (
        "Agent.replay_buffer fills up by 1.0 MiB per step at train.py:56. "
        "Not yet clear whether it has a bound."
    )
    near = replace(leaking(MIB), growth=report_of(group_of(buffer)), total_bytes=2 * GIB)
    assert one(near).severity == "critical"


def test_the_subject_is_the_line_that_stores() -> None:
    stored = Frame("/job/loop.py", 12, "fit")
    holder = held_by("autograd_graph", "total", stored_at=stored)
    finding = one(replace(leaking(MIB), growth=report_of(group_of(holder))))
    assert finding.subject == "loop.py:12"
    assert "total keeps the graph of every step." in finding.detail


def test_where_no_line_is_known_the_holder_is_the_subject() -> None:
    group = replace(group_of(LIST), stack=())
    finding = one(replace(leaking(MIB), growth=report_of(group)))
    assert finding.subject == "T.results['acc']"
    assert finding.summary == "Leaking 1.0 MiB per step, held by T.results['acc']."


def test_an_answer_without_a_culprit_leaves_it_suspected() -> None:
    finding = one(replace(leaking(MIB), growth=report_of(live=[1, 1, 1, 1])))
    assert finding.stage == "suspected"
    assert "A look at the blocks did not tell what stays." in finding.detail


def test_memory_in_half_a_kib_a_step_is_not_the_gpus_leak() -> None:
    number = steps_of(3000)
    graph = group_of(held_by("autograd_graph", "total"), pace=2048)
    rank = rank_of(BASE + number * 512, BLOCKS + number, growth=report_of(graph))
    assert leak(rank) == []


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_no_moment_a_job_that_is_well_is_said_to_leak(name: str, seed: int) -> None:
    for known in prefixes(clean(name, seed=seed), every=3):
        assert all(
            (finding.severity, finding.stage) == ("info", "suspected") for finding in leak(known)
        )


@pytest.mark.parametrize(("slope", "within"), [(MIB, 60), (64 * KIB, 250)])
def test_a_leak_is_found_in_time_and_not_let_go_of(slope: int, within: int) -> None:
    rank = leaking(slope, onset=50, steps=500)
    assert all(leak(at(rank, rows)) for rows in range(50 + within, 500, 7))


def test_a_model_that_is_unfrozen_layer_by_layer_is_held_by_its_optimizer_and_does_not_leak() -> (
    None
):
    """Its state and gradients have a name, and cost volume in each step: they are worked with."""
    layers = 1 + steps_of(400) // 60
    state = held_by("local", "opt", "Adam.state", "defaultdict of 20", "['exp_avg']")
    columns = {
        "category.parameters_bytes": layers * 0 + 128 * MIB,
        "category.gradients_bytes": layers * 8 * MIB,
        "category.optimizer_state_bytes": layers * 16 * MIB,
        "category.buffers_bytes": layers * 0,
        "step.allocated_volume_bytes": 300 * MIB + layers * 30 * MIB,
    }
    floor = BASE + layers * 24 * MIB
    report = report_of(group_of(state, pace=24 * MIB), steps=(152, 181, 241, 301))
    for rows in range(190, 400, 10):
        rank = rank_of(
            floor[:rows],
            BLOCKS + layers[:rows] * 12,
            columns={name: column[:rows] for name, column in columns.items()},
        )
        assert leak(replace(rank, growth=report)) == []
