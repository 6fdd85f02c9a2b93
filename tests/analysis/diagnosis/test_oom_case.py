from __future__ import annotations

from tests.support.made_ooms import MIB, STEP_NS, made_oom, step_rows
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

GRADIENTS = {"category.gradients_bytes": 40 * MIB, "category.gradients_kept_bytes": 0}


def test_what_scales_with_the_batch_has_no_gradients_in_it() -> None:
    rows = step_rows([500] * 10, 100, **GRADIENTS)
    forward = OomCase.of(made_oom(rows, allocated_mib=900, request_mib=200, part="forward"))
    assert forward.moving_bytes == forward.scaling_bytes == 1040 * MIB
    backward = OomCase.of(made_oom(rows, allocated_mib=900, request_mib=200, part="backward"))
    assert backward.scaling_bytes == 1000 * MIB


def test_training_is_no_phase() -> None:
    assert [OomCase.of(made_oom(phase=name)).phase for name in ("", "train", "eval", "mine")] == [
        "",
        "",
        "eval",
        "mine",
    ]


def test_stretches_that_passed_are_those_of_the_same_phase_that_ended_before() -> None:
    stretches = (
        Stretch("eval", 1, 2, 0),
        Stretch("checkpoint", 1, 2, 0),
        Stretch("eval", 3, None, 0),
        Stretch("eval", 1, 100 * STEP_NS, 0),
    )
    case = OomCase.of(made_oom(phase="eval"), RankEvidence(0, stretches=stretches))
    assert case.passed_stretches == [stretches[0]]


def test_settings_are_those_of_the_report_else_of_the_rank() -> None:
    rank = RankEvidence(0, settings="a:1")
    assert OomCase.of(made_oom(settings=None), rank).settings == "a:1"
    assert OomCase.of(made_oom(settings=""), rank).settings == ""
    assert OomCase.of(made_oom(settings=None)).settings is None
