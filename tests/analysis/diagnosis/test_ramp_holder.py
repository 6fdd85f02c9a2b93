"""The agent looks within a step when that would tell more, and of what it saw the ramp is found."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_evaluation_ramp import TOP, evaluated
from tests.support.step_floors import ACTIVATIONS, BASE, MIB, held_by, report_of
from vramscope_analysis.diagnosis.evaluation_ramp import EvaluationRamp, evaluation_ramp
from vramscope_analysis.diagnosis.floors import floors_of
from vramscope_analysis.diagnosis.ramp_holder import ramp_group, ramp_look
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence

GRAPH = GrowthGroup(count=9000, holders=(held_by("autograd_graph", "h", "graph"),))


def ramp_of(rank: RankEvidence) -> EvaluationRamp:
    ramp = evaluation_ramp(rank, floors_of(rank.steps))
    assert ramp is not None
    return ramp


def outs(size: int, key: int = 0) -> GrowthGroup:
    holder = held_by("local", "outs", f"[{key}]", "['x']")
    return GrowthGroup(bytes=size, count=1, holders=(holder,))


def looked_into(*held: GrowthGroup, step: int = 150) -> RankEvidence:
    return replace(evaluated(), within_step=report_of(steps=[step], live=[BASE], held=held))


def group_of(*held: GrowthGroup) -> GrowthGroup | None:
    rank = looked_into(*held)
    return ramp_group(rank, ramp_of(rank))


def test_a_look_is_worth_it_near_the_top_of_the_ramp() -> None:
    rank = evaluated()
    look = ramp_look(rank, ramp_of(rank))
    assert look is not None
    assert BASE + TOP // 2 < look["above_bytes"] < BASE + TOP
    assert look["max_steps"] == 170


def test_where_steps_are_as_high_it_cannot_be_seen() -> None:
    rank = evaluated()
    high = (rank.steps.columns["allocated_bytes.all.current"] + TOP + ACTIVATIONS).astype(int)
    columns = {**rank.steps.columns, "step.peak_allocated_bytes": high}
    rank = replace(rank, steps=replace(rank.steps, columns=columns))
    assert ramp_look(rank, ramp_of(rank)) is None


def test_it_is_not_asked_again_when_it_was_seen_and_much_later_when_it_was_not() -> None:
    seen = looked_into(GRAPH)
    assert ramp_look(seen, ramp_of(seen)) is None
    missed = looked_into(step=150)
    assert ramp_look(missed, ramp_of(missed)) is None
    long_ago = looked_into(step=20)
    assert ramp_look(long_ago, ramp_of(long_ago)) is not None


def test_who_holds_a_good_part_of_it_is_the_one_and_else_a_graph() -> None:
    found = group_of(outs(200 * MIB), GRAPH)
    assert found is not None
    assert found.holders[0].chain[0] == "outs"
    assert group_of(outs(MIB), GRAPH) == GRAPH
    assert group_of(outs(MIB)) is None
    rank = evaluated()
    assert ramp_group(rank, ramp_of(rank)) is None


def test_the_users_name_of_a_graph_comes_before_that_of_a_library() -> None:
    def graph(name: str, file: str) -> GrowthGroup:
        holder = replace(held_by("autograd_graph", name), frame=Frame(file, 28, "f"))
        return GrowthGroup(count=1, holders=(holder,))

    own = graph("h", "/job/evaluate.py")
    library = graph("args", "/env/lib/python3.11/site-packages/torch/nn/modules/module.py")
    assert group_of(library, own) == own
    assert group_of(library) == library


def test_many_small_parts_of_one_name_are_one() -> None:
    found = group_of(*(outs(30 * MIB, key) for key in range(6)), GRAPH)
    assert found is not None
    assert found.bytes == 180 * MIB
