"""Blocks that wait for another stream, told from tensors and from pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, prefixes, recorded_rank
from vramscope_analysis.diagnosis.delayed_reuse import delayed_reuse
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.growth_report import Frame, GrowthReport, WaitingGroup

COUNT = 100
INSIDE = Frame("/venv/lib/python3.11/site-packages/torch/functional.py", 9, "empty")


def job(active: int, allocated: int, **more: Any) -> Any:
    columns = {"step.peak_active_bytes": active, "step.peak_allocated_bytes": allocated}
    return made_rank(COUNT, columns=columns, **more)


def test_blocks_that_wait_are_told_with_what_they_take() -> None:
    (finding,) = delayed_reuse(job(30 * GIB, 22 * GIB))
    assert (
        finding.summary == "8.0 GiB at the peak were free already, and waited for another stream."
    )
    assert (finding.kind, finding.severity, finding.subject) == (
        "retention",
        "info",
        "cross-stream reuse",
    )
    assert finding.remedies[0].predicted_bytes == 8 * GIB
    assert "fragment" not in str(finding)
    assert "leak" not in str(finding)


def test_near_the_limit_it_is_a_warning() -> None:
    assert delayed_reuse(job(75 * GIB, 60 * GIB))[0].severity == "warning"


def test_little_of_it_is_normal_and_the_first_steps_say_nothing() -> None:
    assert delayed_reuse(job(30 * GIB, 29 * GIB)) == []
    assert delayed_reuse(job(300 * MIB, 250 * MIB)) == []
    found = [bool(delayed_reuse(each)) for each in prefixes(job(30 * GIB, 22 * GIB))]
    assert found.index(True) == 69


def test_the_variable_for_collectives_is_told_to_releases_that_know_it() -> None:
    nccl = ({"name": "NCCL", "bytes": GIB},)

    def told(version: str, outside: Any = nccl) -> bool:
        rank = job(30 * GIB, 22 * GIB, torch_version=version, outside=outside)
        return "TORCH_NCCL_AVOID_RECORD_STREAMS" in str(delayed_reuse(rank)[0].remedies)

    assert told("2.6.0+cu124")
    assert not told("2.9.1")
    assert not told("2.6.0", outside=())
    assert not told("")


def test_unknown_is_no_difference() -> None:
    assert delayed_reuse(job(30 * GIB, UNKNOWN)) == []
    assert delayed_reuse(made_rank(COUNT, columns={})) == []


def test_recorded_jobs_of_one_stream_are_left_alone() -> None:
    for name in ("varlen__default", "fixed__default", "conv__default"):
        assert delayed_reuse(recorded_rank(name)) == []


def waiting(*lines: tuple[str, int, int]) -> GrowthReport:
    """A look: file, line and MiB of what waited."""
    return GrowthReport(
        steps=(90,),
        waiting=tuple(
            WaitingGroup((INSIDE, Frame(file, line, "main")), mib * MIB, 1)
            for file, line, mib in lines
        ),
    )


def test_the_lines_that_allocated_what_waits_are_named_where_a_look_has_told() -> None:
    report = waiting(("/job/C35.py", 40, 100), ("/job/C35.py", 31, 70), ("/job/C35.py", 31, 50))
    (finding,) = delayed_reuse(replace(job(30 * GIB, 22 * GIB), growth=report))
    assert [(each.file, each.line, each.bytes) for each in finding.culprits] == [
        ("/job/C35.py", 31, 120 * MIB),
        ("/job/C35.py", 40, 100 * MIB),
    ]
    assert finding.culprits[0].held_by == ("an event of another stream",)
    assert "allocated at C35.py:31, used on another stream" in finding.detail


def test_no_line_is_named_where_none_is_known() -> None:
    for report in (None, waiting(), GrowthReport(waiting=(WaitingGroup((), MIB, 1),))):
        (finding,) = delayed_reuse(replace(job(30 * GIB, 22 * GIB), growth=report))
        assert finding.culprits == ()
        assert "allocated at" not in finding.detail
