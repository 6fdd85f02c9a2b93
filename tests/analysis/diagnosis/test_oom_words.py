"""Two sentences for every cause, short enough, and nothing in them that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.diagnosis.test_oom_causes import LEVEL, process
from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.support.made_ooms import MIB, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import causes_of
from vramscope_analysis.diagnosis.oom_words import detail_of, summary_of
from vramscope_analysis.evidence.oom_report import OomReport

GROWING_FLOORS = [100, 100, 100, *(100 + 15 * n for n in range(40))]
ADAM = (f"{SITE}/torch/optim/adam.py", 178, "_init_group")


def words(report: OomReport) -> tuple[str, str]:
    case = OomCase.of(report)
    causes = causes_of(case)
    return summary_of(case, causes[0]), detail_of(case, causes)


@pytest.mark.parametrize(
    ("report", "summary", "part_of_detail"),
    [
        (
            made_oom(threads=(asking(USER),)),
            "Out of memory before the first step was over: asked for 200 MiB, the largest piece "
            "left was 124 MiB.",
            "In train.py:30 gpt_step.",
        ),
        (
            made_oom(
                LEVEL,
                new_sizes={"before": {"batch_size": 8}, "after": {"batch_size": 16}},
            ),
            "Out of memory at step 30, the first with a batch size of 16 instead of 8.",
            "A command had changed it just before; steps with 8 had peaked at 500 MiB.",
        ),
        (
            made_oom(LEVEL),
            "Out of memory at step 30, which needs at least 1.1 GiB, more than any before "
            "(500 MiB).",
            "nothing had piled up between them.",
        ),
        (
            made_oom(step_rows([f + 300 for f in GROWING_FLOORS], GROWING_FLOORS)),
            "Out of memory at step 43: what steps keep grew by 555 MiB since step 7.",
            "That is 15.0 MiB per step, kept from one to the next.",
        ),
        (
            made_oom(LEVEL, garbage_bytes=300 * MIB),
            "Out of memory at step 30 with 300 MiB of garbage that Python had not collected.",
            "does not run Python's collector",
        ),
        (
            made_oom(LEVEL, largest=(tensor("float32[9]", 300, "exception"),)),
            "Out of memory at step 30: the traceback of an exception keeps 300 MiB.",
            "Its frames (list of 2, kept) keep the tensors",
        ),
        (
            made_oom(LEVEL, allocated_mib=700, free_mib=100, processes=(process(220),)),
            "Out of memory at step 30: other processes hold 220 MiB (pid 4123, jupyter).",
            "This process holds 700 MiB.",
        ),
        (
            made_oom(LEVEL, phase="eval"),
            "Out of memory in evaluation at step 30: asked for 200 MiB, the largest piece left was "
            "124 MiB.",
            "Training steps peak at 500 MiB as a rule; they are not what ran out.",
        ),
        (
            made_oom(step_rows([800] * 30), allocated_mib=600, pieces_mib=300),
            "Out of memory at step 30: asked for 200 MiB in one piece; the largest is 124 MiB, of "
            "424 MiB free.",
            "What is free lies in pieces between live blocks. Steps before had peaked at up to "
            "800 MiB, and fitted.",
        ),
        (
            made_oom(step_rows([200 + 25 * n for n in range(30)]), allocated_mib=950),
            "Out of memory at step 30: asked for 200 MiB, the largest piece left was 74.0 MiB.",
            "What a step needs grew by 25.0 MiB with every step",
        ),
        (
            made_oom(threads=(asking(ADAM, USER),)),
            "Out of memory as the optimizer made its state: asked for 200 MiB, 124 MiB were left.",
            "has to step the optimizer too",
        ),
        (
            made_oom(request_mib=3000, threads=(asking(USER),)),
            "Out of memory before the first step was over: 2.9 GiB in one piece at train.py:30, of "
            "1.0 GiB in all.",
            "",
        ),
    ],
)
def test_each_cause_has_its_words(report: OomReport, summary: str, part_of_detail: str) -> None:
    told, detail = words(report)
    assert told == summary
    assert part_of_detail in detail


def test_who_went_on_ran_out_and_did_not_end() -> None:
    summary, detail = words(made_oom(LEVEL, recovered_step=31))
    assert summary.startswith("Ran out of memory at step 30,")
    assert detail.endswith("The job went on: step 31 ended after it.")


def test_an_error_without_words_is_probably_one() -> None:
    message = 'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp"'
    report = OomReport(
        source="exception",
        step=60,
        message=message,
        allowed_bytes=300 * MIB,
        counters={"reserved_bytes.all.current": 290 * MIB},
    )
    summary, detail = words(report)
    assert summary == "Probably out of memory at step 60."
    assert "it held 290 MiB of 300 MiB" in detail


def test_a_limit_of_the_jobs_own_is_told() -> None:
    _, detail = words(made_oom(LEVEL, total_mib=8192))
    assert (
        "The limit is the process's own, not the device's; the device had 7.1 GiB free." in detail
    )


def test_a_second_cause_is_named_behind_the_first() -> None:
    report = made_oom(
        step_rows([f + 300 for f in GROWING_FLOORS], GROWING_FLOORS), garbage_bytes=300 * MIB
    )
    summary, detail = words(report)
    assert "garbage" in summary
    assert "Also: what steps keep had grown by 555 MiB." in detail


@pytest.mark.parametrize("fields", [{}, {"step": 30}, {"phase": "eval"}, {"source": "host"}])
def test_what_is_not_known_is_left_out(fields: dict[str, Any]) -> None:
    summary, detail = words(OomReport(**fields))
    assert "–" not in summary + detail
    assert summary.endswith(".")


def test_no_summary_is_too_long() -> None:
    long = asking(("/home/me/" + "x" * 90 + ".py", 30, "f"))
    summary, _ = words(made_oom(request_mib=3000, threads=(long,)))
    assert len(summary) <= 110
