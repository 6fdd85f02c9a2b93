"""What is reserved against what was needed: ever, and lately."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, made_rank, rows_of, stretch
from vramscope_analysis.diagnosis.cache_use import CacheUse, cache_use
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.run_evidence import RankEvidence

COUNT = 120
CACHE = {
    "cache.private_pool_bytes": GIB,
    "cache.returnable_bytes": 9 * GIB,
    "cache.stranded_bytes": 2 * GIB,
    "cache.largest_free_bytes": 4 * GIB,
}


def job(peaks: list[int], reserved: list[int] | int = 30 * GIB, **more: Any) -> Any:
    columns: dict[str, Any] = {
        "reserved_bytes.all.current": reserved,
        "step.peak_active_bytes": peaks,
        "step.peak_allocated_bytes": peaks,
    }
    more.setdefault("samples", rows_of(1, CACHE))
    return made_rank(COUNT, columns=columns, **more)


def use_of(rank: RankEvidence, min_steps: int = 100) -> CacheUse | None:
    return cache_use(rank, min_steps)


def test_what_was_never_needed_and_what_is_not_needed_lately() -> None:
    use = use_of(job([10 * GIB] * 40 + [25 * GIB] + [12 * GIB] * 79))
    assert use is not None
    assert (use.reserved_bytes, use.highest_bytes, use.lately_bytes) == (
        30 * GIB,
        25 * GIB,
        12 * GIB,
    )
    assert (use.highest_step, use.last_step, use.idle_steps) == (41, 41, 79)
    assert use.unexplained_bytes == 4 * GIB  # 1 GiB is the graphs'
    assert use.unused_bytes == 9 * GIB  # no more than can be given back


def test_reserved_memory_counts_only_if_all_of_the_last_steps_had_it() -> None:
    use = use_of(job([10 * GIB] * COUNT, [12 * GIB] * 100 + [30 * GIB] * 20))
    assert use is not None
    assert use.reserved_bytes == 12 * GIB


def test_steps_with_another_phase_are_not_training() -> None:
    peaks = [10 * GIB] * 110 + [25 * GIB] + [10 * GIB] * 9
    use = use_of(job(peaks, stretches=[stretch("eval", 110)]))
    assert use is not None
    assert use.lately_bytes == 10 * GIB
    use = use_of(job(peaks))
    assert use is not None
    assert use.lately_bytes == 25 * GIB


def test_the_peak_before_the_first_step_counts() -> None:
    rank = job([10 * GIB] * COUNT)
    columns = {**rank.steps.columns, "allocated_bytes.all.peak": [28 * GIB] * COUNT}
    use = use_of(made_rank(COUNT, columns=columns, samples=rank.samples))
    assert use is not None
    assert use.highest_bytes == 28 * GIB


def test_what_is_not_known_is_not_made_up() -> None:
    use = use_of(job([10 * GIB] * COUNT, samples=rows_of(1, {"cache.stranded_bytes": UNKNOWN})))
    assert use is not None
    assert (use.private_bytes, use.returnable_bytes, use.stranded_bytes) == (None, None, None)
    assert use.unused_bytes == use.unexplained_bytes == 20 * GIB
    assert use_of(job([UNKNOWN] * COUNT)) is None
    assert use_of(job([10 * GIB] * COUNT), min_steps=COUNT + 1) is None
    assert use_of(made_rank(COUNT, columns={})) is None


def test_a_look_of_another_time_tells_nothing() -> None:
    rank = job([10 * GIB] * COUNT)

    def private(active: int) -> int | None:
        columns = {**rank.steps.columns, "active_bytes.all.current": active}
        use = use_of(made_rank(COUNT, columns=columns, samples=rank.samples))
        assert use is not None
        return use.private_bytes

    assert private(18 * GIB) == GIB  # 12 GiB of 30 were free at the look, and are now
    assert private(2 * GIB) is None


def test_a_cache_that_is_in_use_is_not_looked_at_further() -> None:
    assert use_of(job([28 * GIB] * COUNT)) is None
