"""Pinned memory that is handed out and never comes back."""

from __future__ import annotations

from tests.support.made_ranks import GIB, MIB, Column, made_rank, rows_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.pinned_growth import pinned_growth
from vramscope_analysis.evidence.columns import UNKNOWN

SECONDS = 100


def judged(values: Column, limit_bytes: int = 8 * GIB) -> list[Finding]:
    columns: dict[str, Column] = {
        "host.pinned_bytes": values,
        "host.pinned_reserved_bytes": GIB,
        "host.limit_bytes": limit_bytes,
        "host.limit_used_bytes": 4 * GIB,
        "host.workers": 4,
        "host.workers_pss_bytes": 2 * GIB,
    }
    samples = rows_of(SECONDS, columns, every_ns=10**9)
    return pinned_growth(made_rank(1, columns={}, samples=samples))


def test_batches_that_are_kept_pinned_are_found() -> None:
    (finding,) = judged([64 * MIB + 2 * MIB * s for s in range(SECONDS)])
    assert (finding.kind, finding.severity) == ("pinned_growth", "warning")
    assert "more host memory are pinned, " in finding.summary
    assert finding.summary.endswith("MiB per step; none of it was freed.")
    assert "4.0 GiB of host memory are left" in finding.detail
    assert finding.remedies[0].predicted_bytes == finding.evidence["grown_bytes"]


def test_near_the_limit_of_the_host_what_gives_it_room_is_offered_too() -> None:
    kept = [64 * MIB + 2 * MIB * s for s in range(SECONDS)]
    (near,) = judged(kept)
    assert [(each.action, each.predicted_bytes) for each in near.remedies[1:]] == [
        ("use 2 DataLoader workers in place of 4", GIB),
        ("do without pin_memory", GIB),
    ]
    slow = [64 * MIB + MIB * s // 2 for s in range(SECONDS)]
    (far,) = judged(slow, limit_bytes=40 * GIB)
    assert len(far.remedies) == 1


def test_what_a_loader_keeps_ready_is_no_growth() -> None:
    assert judged([64 * MIB + 32 * MIB * (s % 4) for s in range(SECONDS)]) == []
    assert judged([0] * 10 + [512 * MIB] * 90) == []
    assert judged(64 * MIB) == []
    assert judged(UNKNOWN) == []
    assert judged([64 * MIB + MIB * s // 8 for s in range(SECONDS)]) == []
