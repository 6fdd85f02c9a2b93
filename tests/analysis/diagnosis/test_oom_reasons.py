"""Reasons are told where the numbers for them are known; test_oom_words.py has one of each."""

from __future__ import annotations

from tests.analysis.diagnosis.test_oom_causes import LEVEL
from tests.support.made_ooms import MIB, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause
from vramscope_analysis.diagnosis.oom_reasons import besides_of, reason_of
from vramscope_analysis.evidence.oom_report import OomReport


def test_a_spike_is_told_with_the_range_of_the_others_and_its_largest_tensor() -> None:
    cause = Cause("spike", 0.9)
    case = OomCase.of(made_oom(step_rows([200, 300] * 15), largest=(tensor("float32[9, 9]", 5),)))
    assert reason_of(case, cause) == (
        "Steps had peaked at 200 MiB to 300 MiB, depending on their data; nothing had piled up "
        "between them. The largest tensor now is float32[9, 9]."
    )
    named = tensor("float32[9, 9]", 5, category="parameters")
    told = reason_of(OomCase.of(made_oom(LEVEL, largest=(named,))), cause)
    assert told == "Steps had peaked at 500 MiB as a rule; nothing had piled up between them."


def test_a_limit_that_came_down_is_told() -> None:
    limit = Cause("limit", 0.5)
    told = reason_of(OomCase.of(made_oom(step_rows([1500] * 9), limit_mib=1000)), limit)
    assert told == "Steps had peaked at 1.5 GiB before, more than it may have now."
    told = reason_of(OomCase.of(made_oom(step_rows([900] * 9), limit_mib=1000)), limit)
    assert told == "Steps had peaked at 900 MiB before."


def test_what_is_to_come_is_told_of_a_first_step() -> None:
    told = {"category.parameters_bytes": 300 * MIB}
    case = OomCase.of(made_oom(by_category=told, part="forward"))
    assert reason_of(case, Cause("too_big", 0.8)) == (
        "Parameters, buffers and state take 300 MiB; what the batch needs had reached 800 MiB. "
        "Gradients and the optimizer's state are to come."
    )


def test_a_reason_without_its_numbers_is_none() -> None:
    case = OomCase.of(OomReport())
    names = ("spike", "growth", "limit", "other_process", "too_big", "growing_demand", "unknown")
    assert [reason_of(case, Cause(name, 0.5)) for name in names] == [""] * len(names)
    assert besides_of(case, Cause("garbage", 0.5)) == besides_of(case, Cause("spike", 0.5)) == ""
