"""An agent is asked what makes a suspicion a verdict, and not again when it has answered."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_cycle_growth import GARBAGE, teeth
from tests.analysis.diagnosis.test_evaluation_ramp import evaluated
from tests.analysis.diagnosis.test_held_memory import STATE, risen
from tests.support.made_ranks import GIB, made_rank
from tests.support.step_floors import (
    BASE,
    BLOCKS,
    CLEAN,
    MIB,
    at,
    clean,
    group_of,
    held_by,
    leaking,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.diagnose import diagnose
from vramscope_analysis.diagnosis.questions import Question, questions
from vramscope_analysis.evidence.growth_report import Frame, GrowthReport, WaitingGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

LIST = held_by("attribute", "T.results", "list of 40")


def asked(*ranks: RankEvidence) -> list[Question]:
    return questions(RunEvidence("r", 0, ranks=ranks))


def test_of_a_leak_in_every_step_a_few_looks_are_asked() -> None:
    (question,) = asked(leaking(MIB))
    assert question.params == {"looks": 4, "every": 4}
    assert question.reason == "memory has grown since step 52"


def test_of_a_staircase_looks_are_further_apart() -> None:
    risen_times = steps_of(300) // 60
    (question,) = asked(rank_of(BASE + risen_times * 12 * MIB, BLOCKS + risen_times))
    assert question.params == {"looks": 3, "every": 20, "max_steps": 308}


def test_two_equal_rises_are_reason_to_watch_the_next_but_not_to_speak() -> None:
    risen_times = steps_of(300) // 60
    rank = at(rank_of(BASE + risen_times * 12 * MIB, BLOCKS + risen_times), 130)
    (question,) = asked(rank)
    assert question.reason == "memory rose alike at steps 61 and 121"
    assert question.params == {"looks": 3, "every": 20, "max_steps": 308}
    assert diagnose(RunEvidence("r", 0, ranks=(rank,))) == []
    short = report_of(steps=(122, 123, 124), live=[1, 1, 1])
    assert len(asked(replace(rank, growth=short))) == 1
    watched = report_of(steps=(60, 90, 124), live=[1, 1, 1])
    assert asked(replace(rank, growth=watched)) == []


def test_an_answer_that_says_what_it_is_ends_the_questions() -> None:
    assert asked(replace(leaking(MIB), growth=report_of(group_of(LIST)))) == []


def test_an_answer_that_found_nothing_is_asked_again_much_later() -> None:
    nothing = report_of(live=[1, 1, 1, 1])  # at step 112, 60 steps after the beginning
    rank = replace(leaking(MIB), growth=nothing)
    assert asked(at(rank, 200)) == []
    assert len(asked(at(rank, 320))) == 1


def test_an_answer_from_before_does_not_count() -> None:
    old = report_of(group_of(LIST), steps=(10, 14, 18, 22))
    assert len(asked(replace(leaking(MIB), growth=old))) == 1


def test_teeth_are_asked_about_once() -> None:
    (question,) = asked(teeth())
    assert question.reason == "memory falls when Python collects"
    assert asked(replace(teeth(), growth=GARBAGE)) == []


def test_what_builds_up_in_an_evaluation_is_looked_at_while_it_is_there() -> None:
    (question,) = asked(evaluated())
    assert question.params["max_steps"] == 170
    assert BASE + 100 * MIB < question.params["above_bytes"] < BASE + 300 * MIB
    within = report_of(steps=[150], live=[BASE], held=[STATE])
    assert asked(replace(evaluated(), within_step=within)) == []


def test_what_came_once_is_asked_about_once_it_has_stayed() -> None:
    (question,) = asked(replace(risen(), growth=None))
    assert question.params == {"looks": 3, "every": 1, "max_steps": 8}
    assert asked(at(replace(risen(), growth=None), 150)) == []
    assert len(asked(at(replace(risen(), growth=None), 154))) == 1
    assert asked(risen(STATE)) == []


def test_the_rank_that_has_grown_most_is_first() -> None:
    ranks = (replace(leaking(MIB), rank=3), replace(leaking(4 * MIB), rank=5))
    assert [question.rank for question in asked(*ranks)] == [5, 3]


def test_jobs_that_are_well_are_left_alone() -> None:
    quiet = ("constant", "evaluations", "two optimizers", "longest so far", "longer batches")
    assert all(asked(clean(name)) == [] for name in quiet if name in CLEAN)


def test_of_what_waits_for_another_stream_the_lines_are_asked_once() -> None:
    rank = made_rank(
        100,
        columns={
            "step.peak_active_bytes": 30 * GIB,
            "step.peak_allocated_bytes": 22 * GIB,
        },
    )
    (question,) = asked(rank)
    assert question.reason == "which lines allocate what waits for another stream"
    assert question.params == {"looks": 3, "every": 1, "max_steps": 16}
    assert question.grown_bytes == 8 * GIB
    waiting = WaitingGroup((Frame("/job/train.py", 31),), GIB, 2)
    assert asked(replace(rank, growth=GrowthReport(steps=(20,), waiting=(waiting,)))) == []
    # One that did not see it is asked again much later.
    assert asked(replace(rank, growth=GrowthReport(steps=(90,)))) == []
    assert len(asked(replace(rank, growth=GrowthReport(steps=(20,))))) == 1
