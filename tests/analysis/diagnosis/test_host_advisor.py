"""Each measure for host memory is offered where this job has what it frees, and not elsewhere."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, rows_of
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.host_advisor import (
    HostUse,
    advise_host,
    advise_shared,
    host_use,
)
from vramscope_analysis.evidence.columns import UNKNOWN

LIMIT = 16 * GIB


def by_action(remedies: tuple[Remedy, ...]) -> dict[str, Remedy]:
    return {remedy.action: remedy for remedy in remedies}


def offered(**use: Any) -> dict[str, Remedy]:
    return by_action(advise_host(HostUse(**use), LIMIT))


def test_half_the_workers_free_half_of_what_they_hold() -> None:
    found = offered(workers=8, workers_bytes=6 * GIB, wait_share=0.04)
    remedy = found["use 4 DataLoader workers in place of 8"]
    assert remedy.predicted_bytes == 3 * GIB
    assert remedy.cost == "batches may be late: 4.0\u2009% of a step is waiting for data now"
    assert remedy.fix == "DataLoader(..., num_workers=4)"
    assert offered(workers=3, workers_bytes=6 * GIB)[
        "use 1 DataLoader worker in place of 3"
    ].predicted_bytes == (4 * GIB)


def test_fewer_workers_are_not_offered_where_there_are_none_or_theirs_is_not_known() -> None:
    assert offered(workers=0, workers_bytes=6 * GIB) == {}
    assert offered(workers=1, workers_bytes=6 * GIB) == {}
    assert offered(workers=8) == {}
    assert offered(workers=8, workers_bytes=300 * MIB) == {}, "too little to matter"


def test_a_smaller_prefetch_frees_half_of_what_came_with_the_workers() -> None:
    found = offered(workers=8, shared_bytes=2 * GIB)
    remedy = found["halve prefetch_factor"]
    assert remedy.predicted_bytes == GIB
    assert "prefetch_factor" in remedy.fix
    assert remedy.cost
    assert offered(workers=8) == {}
    assert offered(workers=0, shared_bytes=2 * GIB) == {}


def test_no_pinned_copies_where_pytorch_holds_much_of_them() -> None:
    remedy = offered(pinned_bytes=2 * GIB)["do without pin_memory"]
    assert remedy.predicted_bytes == 2 * GIB
    assert remedy.cost
    assert offered(pinned_bytes=128 * MIB) == {}
    assert offered(pinned_bytes=None) == {}


def test_the_most_effective_comes_first() -> None:
    use = HostUse(8, 3 * GIB, 2 * GIB, GIB)
    freed = [remedy.predicted_bytes or 0 for remedy in advise_host(use, LIMIT)]
    assert freed == sorted(freed, reverse=True)
    assert len(freed) == 3


def test_against_shared_memory_only_what_lies_there_counts() -> None:
    use = HostUse(4, 3 * GIB, 2 * GIB, 48 * MIB)
    found = by_action(advise_shared(use, 64 * MIB))
    assert {action: remedy.predicted_bytes for action, remedy in found.items()} == {
        "use 2 DataLoader workers in place of 4": 24 * MIB,
        "halve prefetch_factor": 24 * MIB,
    }


def test_what_a_process_has_is_read_from_its_rows() -> None:
    samples = rows_of(
        4,
        {
            "host.workers": [0, 0, 4, 4],
            "host.workers_pss_bytes": [UNKNOWN, UNKNOWN, GIB, 2 * GIB],
            "host.pinned_reserved_bytes": 512 * MIB,
            "host.shm_used_bytes": [MIB, 2 * MIB, 20 * MIB, 50 * MIB],
        },
    )
    columns = {"step.data_wait_us": 2_000, "step.duration_us": 10_000}
    use = host_use(made_rank(10, columns=columns, samples=samples))
    assert use == HostUse(4, 2 * GIB, 512 * MIB, 48 * MIB, 0.2)


def test_what_workers_brought_is_not_known_where_they_were_there_before() -> None:
    there = rows_of(4, {"host.workers": 4, "host.shm_used_bytes": 50 * MIB})
    assert host_use(made_rank(1, columns={}, samples=there)).shared_bytes is None
    none = rows_of(4, {"host.workers": 0, "host.shm_used_bytes": 50 * MIB})
    assert host_use(made_rank(1, columns={}, samples=none)).shared_bytes is None
    assert host_use(made_rank(1, columns={})) == HostUse()
