"""What an agent says is held, and not worked with, is set beside the moment at which it came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.step_floors import BASE, MIB, at, held_by, rank_of, report_of, steps_of
from vramscope_analysis.diagnosis.held_memory import held_memory, step_to_ask_about
from vramscope_analysis.evidence.growth_report import GrowthGroup, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence

N = steps_of(300)


def held(size: int, holder: Holder, category: str = "") -> GrowthGroup:
    return GrowthGroup(bytes=size, count=2, holders=(holder,), category=category)


def risen(*groups: GrowthGroup, asked_at: int = 200, back_at: int = 300) -> RankEvidence:
    floor = BASE + ((N >= 120) & (back_at > N)) * 192 * MIB
    steps = tuple(range(asked_at, asked_at + 3))
    report = report_of(steps=steps, live=[1, 1, 1], held=groups)
    return rank_of(floor, growth=report)


STATE = held(180 * MIB, held_by("local", "state", "dict of 3"))


def test_a_holder_of_the_size_of_a_rise_is_behind_it() -> None:
    (found,) = held_memory(risen(STATE))
    assert (found.since_step, found.group, found.is_exception) == (121, STATE, False)
    assert found.rise is not None


def test_the_keys_of_a_dict_are_held_by_one_name() -> None:
    parts = [
        held(32 * MIB, held_by("local", "states", f"['{key}.weight']", "list of 2"))
        for key in range(6)
    ]
    other = held(9 * MIB, held_by("local", "x"))
    (found,) = held_memory(risen(*parts, other))
    assert (found.group.bytes, found.group.count) == (192 * MIB, 12)
    assert found.group.holders[0].chain == ("states",)


def test_what_steps_write_to_is_in_use() -> None:
    assert held_memory(risen(replace(STATE, is_written=True))) == []
    assert len(held_memory(risen(replace(STATE, is_written=False)))) == 1
    # One of its tensors is enough: the others may belong to layers that are frozen.
    average = held_by("local", "average", "dict of 3")
    frozen = held(90 * MIB, average)
    assert held_memory(risen(frozen, replace(frozen, is_written=True))) == []


def test_what_is_too_small_for_it_is_not() -> None:
    assert held_memory(risen(held(4 * MIB, held_by("local", "x")))) == []


def test_whether_another_rise_comes_is_waited_for_but_an_exception_is_told_at_once() -> None:
    assert held_memory(at(risen(STATE, asked_at=150), 180)) == []
    assert len(held_memory(at(risen(STATE, asked_at=150), 186))) == 1
    kept = held(180 * MIB, held_by("exception", "sys.last_traceback"))
    assert len(held_memory(at(risen(kept, asked_at=150), 160))) == 1


def test_a_report_from_before_the_rise_says_nothing_about_it() -> None:
    assert held_memory(risen(STATE, asked_at=60)) == []


def test_what_has_gone_since_the_report_is_not_held_any_more() -> None:
    assert held_memory(risen(STATE, back_at=250)) == []


def test_without_a_rise_plain_tensors_are_left_alone_and_models_are_not() -> None:
    volume = np.where(N < 150, 900, 300) * MIB
    model = held(100 * MIB, held_by("local", "model1"), "parameters")
    report = report_of(steps=(200, 201, 202), live=[1, 1, 1], held=(STATE, model))
    columns = {"step.allocated_volume_bytes": volume}
    rank = rank_of([BASE] * 300, columns=columns, growth=report)
    (found,) = held_memory(rank)
    assert (found.group, found.rise) == (model, None)
    assert held_memory(replace(rank, steps=rank_of([BASE] * 300).steps)) == []


def test_a_model_that_has_been_let_go_of_since_is_not_held() -> None:
    volume = np.where(N < 150, 900, 300) * MIB
    model = held(100 * MIB, held_by("local", "model1"), "parameters")
    report = report_of(steps=(200, 201, 202), live=[1, 1, 1], held=(model,))
    columns = {"step.allocated_volume_bytes": volume}
    floor = BASE - (N >= 250) * 90 * MIB
    rank = rank_of(floor, columns=columns, growth=report)
    assert len(held_memory(at(rank, 249))) == 1
    assert held_memory(rank) == []


def test_an_exception_is_known_as_one() -> None:
    (found,) = held_memory(risen(held(180 * MIB, held_by("exception", "sys.last_traceback"))))
    assert found.is_exception


def test_the_agent_is_to_be_asked_about_the_newest_moment() -> None:
    assert step_to_ask_about(risen()) == 121
    assert step_to_ask_about(rank_of([BASE] * 300)) is None
    assert step_to_ask_about(rank_of([BASE] * 5)) is None
    assert held_memory(rank_of([BASE] * 300)) == []
