"""Blocks that wait for another stream, told from tensors and from pieces."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, prefixes, recorded_rank
from vramscope_analysis.diagnosis.delayed_reuse import delayed_reuse
from vramscope_analysis.evidence.columns import UNKNOWN

COUNT = 100


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
