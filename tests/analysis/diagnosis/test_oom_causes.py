"""One report for each cause, and the same report without what makes it one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.support.made_ooms import MIB, STEP_NS, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause, causes_of
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch

LEVEL = step_rows([500] * 30)


def cause(report: OomReport, rank: RankEvidence | None = None) -> Cause:
    return causes_of(OomCase.of(report, rank))[0]


def names(report: OomReport) -> list[str]:
    return [each.name for each in causes_of(OomCase.of(report))]


def samples(**columns: list[float]) -> Rows:
    count = len(next(iter(columns.values())))
    told = {name.replace("__", "."): np.array(values) for name, values in columns.items()}
    return Rows(np.arange(count, dtype=np.int64), told)


def test_a_job_that_never_fitted_is_too_big() -> None:
    assert cause(made_oom()).name == "too_big"


def test_one_request_that_no_empty_device_could_serve() -> None:
    assert cause(made_oom(request_mib=3000)).name == "large_request"
    # After steps that went well it is one step that needs more.
    assert cause(made_oom(LEVEL, request_mib=3000)).name == "spike"


def test_a_step_far_above_all_others_is_a_spike() -> None:
    found = cause(made_oom(LEVEL, allocated_mib=900, request_mib=200))
    assert (found.name, found.bytes) == ("spike", 600 * MIB)


def test_the_first_step_of_a_larger_batch_is_no_spike() -> None:
    sizes = {"before": {"batch_size": 8}, "after": {"batch_size": 16}}
    found = cause(made_oom(LEVEL, allocated_mib=900, request_mib=200, new_sizes=sizes))
    assert (found.name, found.bytes) == ("resize", 600 * MIB)
    smaller = {"before": {"batch_size": 16}, "after": {"batch_size": 8}}
    assert cause(made_oom(LEVEL, new_sizes=smaller)).name == "spike"
    # Steps of the smaller batch had needed as much: the larger one is not to blame.
    pieces = made_oom(step_rows([1000] * 30), allocated_mib=600, pieces_mib=400, new_sizes=sizes)
    assert cause(pieces).name == "fragmentation"


def test_a_step_just_above_all_others_is_not() -> None:
    report = made_oom(step_rows([1000] * 30), allocated_mib=900, request_mib=150)
    assert names(report) == ["limit"]


def test_needs_that_grow_are_told_from_a_spike_and_from_what_is_kept() -> None:
    report = made_oom(step_rows([200 + 25 * n for n in range(30)]), allocated_mib=950)
    assert cause(report).name == "growing_demand"
    # Outputs that are still referenced at a step's end grow with the batch.
    floors = [100 + 2.5 * n for n in range(30)]
    report = made_oom(step_rows([200 + 25 * n for n in range(30)], floors), allocated_mib=1000)
    assert cause(report).name == "growing_demand"


def test_what_steps_keep_is_growth_if_it_accounts_for_what_was_missing() -> None:
    floors = [100, 100, 100, *(100 + 15 * n for n in range(40))]
    report = made_oom(step_rows([f + 300 for f in floors], floors), allocated_mib=950)
    assert cause(report).name == "growth"
    small = [100 + 0.1 * n for n in range(40)]
    report = made_oom(step_rows([f + 300 for f in small], small), allocated_mib=950)
    assert cause(report).name == "spike"


def test_garbage_and_exceptions_count_if_they_are_large_enough() -> None:
    assert cause(made_oom(LEVEL, garbage_bytes=80 * MIB)).name == "garbage"
    assert cause(made_oom(LEVEL, garbage_bytes=70 * MIB)).name == "spike"
    held = (tensor("float32[9]", 80, "exception"), tensor("float32[9]", 500, "local"))
    found = cause(made_oom(LEVEL, largest=held))
    assert (found.name, found.bytes, found.who) == (
        "retained_exception",
        80 * MIB,
        "list of 2, kept",
    )
    assert cause(made_oom(LEVEL, largest=(tensor("x", 70, "exception"),))).name == "spike"
    assert cause(made_oom(LEVEL, largest=(tensor("x", 80, "garbage"),))).name == "garbage"


def test_what_went_while_the_report_was_written_was_garbage() -> None:
    left = ({"requested_bytes": 5 * MIB, "count": 100, "bytes": 500 * MIB},)
    found = cause(made_oom(LEVEL, allocated_mib=900, by_size=left, garbage_bytes=0))
    assert (found.name, found.bytes) == ("garbage", 400 * MIB)
    all_of_it = ({"requested_bytes": 5 * MIB, "count": 180, "bytes": 900 * MIB},)
    assert cause(made_oom(LEVEL, allocated_mib=900, by_size=all_of_it)).name == "spike"


def test_the_exception_that_told_of_it_is_not_its_cause() -> None:
    held = (tensor("float32[9]", 80, "exception"),)
    assert cause(made_oom(LEVEL, largest=held, source="exception")).name == "spike"


def process(size_mib: float, *, own: bool = False) -> dict[str, Any]:
    return {"pid": 4123, "command": "jupyter", "bytes": int(size_mib * MIB), "own": own}


def test_another_process_is_the_cause_if_it_holds_what_was_missing() -> None:
    report = made_oom(LEVEL, allocated_mib=700, free_mib=100, processes=(process(220),))
    found = cause(report)
    assert (found.name, found.who, found.bytes) == ("other_process", "pid 4123, jupyter", 220 * MIB)
    few = made_oom(LEVEL, allocated_mib=700, free_mib=100, processes=(process(90),))
    assert cause(few).name == "spike"
    own = made_oom(LEVEL, allocated_mib=700, free_mib=100, processes=(process(900, own=True),))
    assert cause(own).name == "spike"


def test_another_process_is_not_the_cause_at_the_jobs_own_limit() -> None:
    report = made_oom(LEVEL, total_mib=8192, free_mib=7000, processes=(process(900),))
    assert "other_process" not in names(report)


def test_a_small_process_counts_if_it_came_lately() -> None:
    fields: dict[str, Any] = {"allocated_mib": 20_000, "request_mib": 200, "total_mib": 20_480}
    fields |= {"limit_mib": 20_480, "free_mib": 170, "processes": (process(300),)}
    assert "other_process" not in names(made_oom(LEVEL, **fields))
    came = samples(device__other_bytes=[0, 0, 300 * MIB])
    assert cause(made_oom(LEVEL, samples=came, **fields)).name == "other_process"


def test_memory_beside_the_allocator_is_the_cause_if_it_rose() -> None:
    rose = samples(
        device__process_bytes=[900 * MIB, 1010 * MIB],
        reserved_bytes__all__current=[800.0 * MIB, 800.0 * MIB],
    )
    fields: dict[str, Any] = {"free_mib": 100, "outside": ({"name": "NCCL", "bytes": 200 * MIB},)}
    found = cause(made_oom(LEVEL, samples=rose, **fields))
    assert (found.name, found.who) == ("outside", "NCCL")
    assert cause(made_oom(LEVEL, **fields)).name == "spike"


def test_an_evaluation_is_the_cause_and_not_the_training_batch() -> None:
    assert cause(made_oom(LEVEL, phase="eval")).name == "evaluation"
    assert cause(made_oom(LEVEL, phase="checkpoint")).name == "checkpoint"
    assert cause(made_oom(LEVEL, phase="generate")).name == "phase"


def test_an_evaluation_that_had_passed_before_fails_for_what_is_kept_since() -> None:
    floors = [100, 100, 100, *(100 + 15 * n for n in range(40))]
    report = made_oom(step_rows([f + 300 for f in floors], floors), phase="eval")
    passed = RankEvidence(0, stretches=(Stretch("eval", 5 * STEP_NS, 6 * STEP_NS, 5),))
    assert cause(report).name == "evaluation"
    assert cause(report, passed).name == "growth"


def test_state_of_the_optimizer_is_known_by_who_asked() -> None:
    adam = (f"{SITE}/torch/optim/adam.py", 178, "_init_group")
    assert cause(made_oom(threads=(asking(adam, USER),))).name == "first_step_state"
    assert cause(made_oom(part="optimizer")).name == "first_step_state"
    assert cause(made_oom(LEVEL, part="optimizer")).name == "spike"


def test_pieces_are_the_cause_where_the_step_needed_no_more_than_others() -> None:
    steps = step_rows([800] * 30)
    report = made_oom(steps, allocated_mib=600, pieces_mib=300, request_mib=200)
    found = cause(report)
    assert (found.name, found.confidence) == ("fragmentation", 0.9)
    assert names(made_oom(steps, allocated_mib=850, request_mib=180, pieces_mib=2)) == [
        "spike",
        "limit",
    ]


def test_pieces_are_not_the_cause_of_what_needs_far_more_or_more_and_more() -> None:
    spike = made_oom(LEVEL, allocated_mib=700, pieces_mib=200, request_mib=200)
    assert cause(spike).name == "spike"
    growing = step_rows([200 + 25 * n for n in range(30)])
    report = made_oom(growing, allocated_mib=750, pieces_mib=200, request_mib=200)
    assert cause(report).name == "growing_demand"


def test_whoever_allocates_past_pytorch_is_told_apart() -> None:
    cached = {"pool": "large", "bytes": 300 * MIB, "returnable_bytes": 300 * MIB}
    fields: dict[str, Any] = {"message": "CUDA error: out of memory", "source": "exception"}
    report = made_oom(LEVEL, allocated_mib=700, pieces_mib=300, **fields, free_blocks=(cached,))
    assert cause(report).name == "cache"
    assert cause(made_oom(LEVEL, **fields)).name == "outside"
    pinning = asking((f"{SITE}/torch/_tensor.py", 1, "pin_memory"), USER)
    assert cause(made_oom(LEVEL, **fields, threads=(pinning,))).name == "pinned_host"
    assert cause(made_oom(LEVEL, source="host")).name == "host"


@pytest.mark.parametrize("fields", [{}, {"step": 50}])
def test_a_report_of_which_nothing_is_known_has_no_bold_cause(fields: dict[str, Any]) -> None:
    found = causes_of(OomCase.of(OomReport(**fields)))
    assert [each.name for each in found] in (["too_big"], ["unknown"])
    assert found[0].confidence <= 0.8


def test_a_segment_that_once_served_as_much_and_is_carved_up_now() -> None:
    """Nothing that steps needed says so: it was before the first of them had ended."""
    large = {"pool": "large", "bytes": 420 * MIB, "largest_bytes": 300 * MIB}
    fields: dict[str, Any] = {"allocated_mib": 110, "request_mib": 400, "pieces_mib": 420}
    fields |= {"limit_mib": 640, "total_mib": 640}
    steps = step_rows([110] * 30)
    carved = {**large, "largest_segment_bytes": 400 * MIB}
    assert cause(made_oom(steps, free_blocks=(carved,), **fields)).name == "fragmentation"
    small = {**large, "largest_segment_bytes": 300 * MIB}
    assert cause(made_oom(steps, free_blocks=(small,), **fields)).name == "spike"
