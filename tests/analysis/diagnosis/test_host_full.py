"""A host, or its shared memory, that is nearly used up, and by the job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, Column, made_rank, rows_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.host_full import host_full
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

SECONDS = 60
FULL: dict[str, Column] = {
    "host.limit_bytes": 16 * GIB,
    "host.limit_used_bytes": 15 * GIB,
    "host.anonymous_bytes": 8 * GIB,
    "host.workers": [0] * 5 + [8] * 55,
    "host.workers_pss_bytes": 6 * GIB,
    "host.pinned_reserved_bytes": GIB,
    "host.shm_size_bytes": 8 * GIB,
    "host.shm_used_bytes": [0] * 5 + [GIB] * 55,
    "allocated_bytes.all.current": 0,
}
SMALL_SHARED: dict[str, Column] = {
    "host.shm_size_bytes": 64 * MIB,
    "host.shm_used_bytes": [MIB] * 5 + [60 * MIB] * 55,
    "host.workers": [0] * 5 + [4] * 55,
}


def rank(number: int = 0, host: str = "node", **changes: Any) -> RankEvidence:
    columns = FULL | {f"host.{name}": value for name, value in changes.items()}
    samples = rows_of(SECONDS, columns, every_ns=10**9)
    return made_rank(1, columns={}, samples=samples, rank=number, host=host)


def judged(*ranks: RankEvidence, emulated: bool = False) -> list[Finding]:
    return host_full(RunEvidence("run", 0, ranks=ranks, emulated=emulated))


def test_a_full_host_is_told_with_what_the_workers_hold_and_what_would_help() -> None:
    (finding,) = judged(rank())
    assert finding.summary == (
        "Host memory is nearly full: 1.0 GiB left of 16.0 GiB; 8 workers hold 6.0 GiB."
    )
    assert len(finding.summary) <= MAX_SENTENCE
    assert (finding.kind, finding.severity, finding.subject) == (
        "host_full",
        "warning",
        "host memory",
    )
    assert "14.0 GiB" in finding.detail
    assert [(each.action, each.predicted_bytes) for each in finding.remedies] == [
        ("use 4 DataLoader workers in place of 8", 3 * GIB),
        ("do without pin_memory", GIB),
        ("halve prefetch_factor", GIB // 2),
    ]


def test_a_file_cache_that_fills_the_limit_is_no_trouble() -> None:
    assert judged(rank(anonymous_bytes=2 * GIB)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"limit_used_bytes": 12 * GIB},
        {"limit_used_bytes": [12 * GIB] * 58 + [15 * GIB] * 2},
        {"limit_bytes": UNKNOWN},
        {"anonymous_bytes": UNKNOWN},
        {"workers_pss_bytes": UNKNOWN},
    ],
)
def test_with_room_or_where_it_is_not_known_nothing_is_said(changes: dict[str, Any]) -> None:
    assert judged(rank(**changes)) == []


def test_a_job_without_workers_may_fill_the_host_too() -> None:
    (finding,) = judged(
        rank(
            workers=0, workers_pss_bytes=UNKNOWN, anonymous_bytes=14 * GIB, pinned_reserved_bytes=0
        )
    )
    assert finding.summary == "Host memory is nearly full: 1.0 GiB left of 16.0 GiB."
    assert finding.remedies == ()


def test_ranks_of_a_host_are_taken_together_and_told_once() -> None:
    half: dict[str, Any] = {"anonymous_bytes": 4 * GIB, "workers_pss_bytes": 3 * GIB}
    (finding,) = judged(rank(0, **half), rank(1, **half))
    assert finding.ranks == (0, 1)
    assert finding.evidence["workers"] == 16
    assert judged(rank(0, **half), rank(1, "other", **half)) == []


def test_on_an_emulated_device_its_tensors_are_left_out() -> None:
    samples = rows_of(SECONDS, FULL | {"allocated_bytes.all.current": 8 * GIB}, every_ns=10**9)
    emulated = made_rank(1, columns={}, samples=samples)
    assert judged(emulated, emulated=True) == []
    assert len(judged(emulated)) == 1


def test_full_shared_memory_is_told_with_batches_that_wait() -> None:
    samples = rows_of(SECONDS, SMALL_SHARED, every_ns=10**9)
    (finding,) = judged(made_rank(1, columns={}, samples=samples))
    assert finding.summary == (
        "Shared memory is nearly full: 4.0 MiB left of 64.0 MiB, in use by 4 DataLoader workers."
    )
    assert finding.subject == "shared memory"
    assert "bus error" in finding.detail
    *measured, room = finding.remedies
    assert {each.action: each.predicted_bytes for each in measured} == {
        "use 2 DataLoader workers in place of 4": 59 * MIB // 2,
        "halve prefetch_factor": 59 * MIB // 2,
    }
    assert room.fix == "docker run --shm-size=128m"


@pytest.mark.parametrize(
    "changes",
    [
        {"host.shm_used_bytes": [MIB] * 5 + [40 * MIB] * 55},
        {"host.shm_used_bytes": [58 * MIB] * 5 + [60 * MIB] * 55},  # somebody else's
        {"host.workers": 4},  # what was there before them is not known
        {"host.workers": 0},
        {"host.shm_size_bytes": UNKNOWN},
    ],
)
def test_shared_memory_with_room_or_of_others_is_not_told(changes: dict[str, Any]) -> None:
    samples = rows_of(SECONDS, SMALL_SHARED | changes, every_ns=10**9)
    assert judged(made_rank(1, columns={}, samples=samples)) == []


def test_nothing_is_said_too_early() -> None:
    early = rank()
    samples = early.samples.before(15)
    assert judged(made_rank(1, columns={}, samples=samples)) == []
    assert judged(made_rank(1, columns={})) == []
