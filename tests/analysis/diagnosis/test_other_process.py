"""Memory that others hold: strangers on the device, and ranks that ended up on the wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, made_rank, rows_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.other_process import other_process
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

OWN = {"pid": 1, "command": "train.py", "bytes": 60 * GIB, "own": True}


def rank(
    *others: dict[str, Any],
    free: int = 3 * GIB,
    number: int = 0,
    reserved: int = 59 * GIB,
    **more: Any,
) -> RankEvidence:
    samples = rows_of(1, {"device.free_bytes": free, "reserved_bytes.all.current": reserved})
    return made_rank(1, columns={}, rank=number, samples=samples, processes=(OWN, *others), **more)


def judged(*ranks: RankEvidence) -> list[Finding]:
    return other_process(RunEvidence("run", 0, ranks=ranks, world_size=len(ranks)))


def jupyter(size: int | None = 8 * GIB + 410 * MIB) -> dict[str, Any]:
    return {"pid": 4123, "command": "jupyter", "bytes": size, "own": False}


def test_a_stranger_that_leaves_little_is_a_warning() -> None:
    (finding,) = judged(rank(jupyter()))
    assert finding.summary == (
        "8.4 GiB belong to another process (pid 4123, jupyter); 3.0 GiB are left."
    )
    assert (finding.kind, finding.severity, finding.ranks) == ("other_process", "warning", (0,))
    assert finding.remedies[0].predicted_bytes == 8 * GIB + 410 * MIB


def test_with_room_enough_it_is_worth_knowing_only() -> None:
    (finding,) = judged(rank(jupyter(), free=30 * GIB))
    assert finding.severity == "info"


def test_several_are_one_finding() -> None:
    more = {"pid": 7, "command": "", "bytes": 20 * GIB, "own": False}
    (finding,) = judged(rank(jupyter(), more))
    assert finding.summary == (
        "28.4 GiB belong to 2 other processes (most: pid 7); 3.0 GiB are left."
    )
    assert [each["pid"] for each in finding.evidence["processes"]] == [7, 4123]


def test_a_cap_is_offered_by_what_this_job_needs() -> None:
    judge = made_rank(
        50,
        columns={"step.peak_active_bytes": 20 * GIB},
        processes=(OWN, jupyter()),
        samples=rows_of(1, {"device.free_bytes": 40 * GIB}),
    )
    (finding,) = judged(judge)
    assert finding.remedies[1].fix == "torch.cuda.set_per_process_memory_fraction(0.28)"
    assert "MIG" in finding.remedies[1].why
    small = made_rank(50, columns={"step.peak_active_bytes": 65 << 20}, processes=(OWN, jupyter()))
    (finding,) = judged(small)
    assert finding.remedies[1].fix == "torch.cuda.set_per_process_memory_fraction(0.01)"
    (capped,) = judged(
        made_rank(
            50,
            columns={"step.peak_active_bytes": 20 * GIB},
            processes=(OWN, jupyter()),
            limit_bytes=40 * GIB,
        )
    )
    assert len(capped.remedies) == 1


@pytest.mark.parametrize("size", [None, 200 * MIB, 3 * GIB, 1 << 64, -1])
def test_little_unknown_or_impossible_sizes_are_no_finding(size: int | None) -> None:
    assert judged(rank(jupyter(size))) == []
    assert judged(rank()) == []
    assert judged(made_rank(1, columns={})) == []


def other_rank(number: int, size: int) -> dict[str, Any]:
    return {
        "pid": 100 + number,
        "command": f"train.py, rank {number} of this job",
        "bytes": size,
        "own": False,
    }


def test_a_rank_that_trains_elsewhere_and_has_a_context_here() -> None:
    first = rank(other_rank(1, 702 * MIB), free=30 * GIB)
    findings = judged(first, rank(number=1, free=30 * GIB))
    assert [finding.summary for finding in findings] == [
        "Rank 1 of this job (pid 101) also holds 702 MiB on the device of rank 0."
    ]
    assert (findings[0].ranks, findings[0].severity) == ((0,), "warning")
    fixes = [remedy.fix for remedy in findings[0].remedies]
    assert fixes[0] == "torch.cuda.set_device(local_rank)"
    assert "map_location" in fixes[1]
    assert "leak" not in str(findings)
    assert findings[0].evidence["processes"] == [
        {
            "pid": 101,
            "command": "train.py, rank 1 of this job",
            "bytes": 702 * MIB,
            "rank": 1,
            "reserved_bytes": 59 * GIB,
        }
    ]


def test_all_other_ranks_on_the_first_device_are_one_finding() -> None:
    first = rank(*(other_rank(number, 700 * MIB) for number in range(1, 8)), free=30 * GIB)
    (finding,) = judged(first, *(rank(number=number, free=30 * GIB) for number in range(1, 8)))
    assert finding.summary == "7 other ranks of this job also hold 4.8 GiB on the device of rank 0."


def test_ranks_that_share_a_device_on_purpose_are_no_strays() -> None:
    both = (
        rank(other_rank(1, 2 * GIB), reserved=GIB, free=30 * GIB),
        rank(other_rank(0, 2 * GIB), number=1, reserved=GIB, free=30 * GIB),
    )
    assert judged(*both) == []
    # Of a rank that has not been heard of nothing is known.
    assert judged(rank(other_rank(1, 700 * MIB), free=30 * GIB)) == []


def test_where_a_rank_trains_says_its_device_and_not_how_much_it_has() -> None:
    # A small job: all that rank 1 has is less than its context on the device of rank 0.
    first = rank(other_rank(1, 702 * MIB), free=30 * GIB, device_uuid="GPU-0")
    here = rank(number=1, reserved=72 * MIB, free=30 * GIB, device_uuid="GPU-0")
    elsewhere = rank(number=1, reserved=72 * MIB, free=30 * GIB, device_uuid="GPU-1")
    (finding,) = judged(first, elsewhere)
    assert "Rank 1 of this job (pid 101) also holds 702 MiB" in finding.summary
    assert judged(first, here) == []
