"""Flushes that go on are found with what they cost; those of warm-up and single ones are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, made_rank, prefixes, recorded_rank, stretch
from vramscope_analysis.diagnosis.thrash import thrash
from vramscope_analysis.evidence.columns import UNKNOWN

COUNT = 200


def counter(count: int, at: set[int], step: int = 1) -> list[int]:
    """A counter that rises in these steps, which are counted from 1."""
    total, values = 0, list[int]()
    for number in range(1, count + 1):
        total += step * (number in at)
        values.append(total)
    return values


def job(at: set[int], *, slow_us: int = 300_000, count: int = COUNT, **more: Any) -> Any:
    columns: dict[str, Any] = {
        "num_alloc_retries": counter(count, at),
        "num_device_alloc": counter(count, at, 20),
        "num_device_free": counter(count, at, 20),
        "step.duration_us": [slow_us if n in at else 100_000 for n in range(1, count + 1)],
        "step.peak_active_bytes": 78 * GIB,
    }
    return made_rank(count, columns=columns | more.pop("changes", {}), **more)


def test_flushes_in_steady_state_are_slow_with_their_part_of_the_time() -> None:
    (finding,) = thrash(job(set(range(60, 201, 4))))
    assert finding.summary == (
        "Slow: the cache was flushed 25 times in the last 100 steps, 33\u2009% of the step time."
    )
    assert (finding.kind, finding.severity, finding.since_step) == ("thrash", "warning", 60)
    assert finding.evidence["flushes"] == 25
    assert abs(finding.evidence["lost_share"] - 1 / 3) < 0.01
    assert finding.detail == "These steps need 78.0 GiB of 80.0 GiB: there is too little memory."


def test_enough_memory_in_the_wrong_pieces_is_told_apart() -> None:
    changes = {"step.peak_active_bytes": 50 * GIB}
    (finding,) = thrash(job(set(range(60, 201, 4)), changes=changes))
    assert "not in pieces of the right sizes" in finding.detail


def test_what_costs_nothing_is_no_warning_and_unknown_time_is_not_made_up() -> None:
    (finding,) = thrash(job(set(range(60, 200, 10)), slow_us=101_000))
    assert finding.severity == "info"
    every = job(set(range(60, 201)), changes={"step.duration_us": UNKNOWN})
    (finding,) = thrash(every)
    assert (finding.severity, finding.evidence["lost_share"]) == ("warning", None)
    assert finding.summary == "Slow: the cache was flushed 100 times in the last 100 steps."


@pytest.mark.parametrize(
    "at",
    [set[int](), {150}, {150, 160}, set(range(1, 21)), {90, 100, 110, 120}],
    ids=["none", "one", "two", "warm-up", "over"],
)
def test_no_false_alarm(at: set[int]) -> None:
    assert thrash(job(at)) == []


def test_flushes_of_the_first_steps_are_never_a_finding_at_any_moment() -> None:
    assert [thrash(each) for each in prefixes(job(set(range(1, 20))))] == [[]] * COUNT


def test_flushes_at_evaluations_alone_are_about_the_change_of_phase() -> None:
    rank = job({51, 101, 151}, stretches=[stretch("eval", n) for n in (50, 100, 150)])
    (finding,) = thrash(rank)
    assert (finding.subject, finding.severity) == ("after eval", "warning")
    assert finding.remedies[0].fix == "torch.cuda.empty_cache()"
    assert not any("halve" in remedy.action for remedy in finding.remedies)
    once = thrash(job({151}, stretches=[stretch("eval", 150)]))
    assert [finding.severity for finding in once] == ["info"]
    # Flushes elsewhere as well are not explained by it.
    both = job({101, 130, 151, 170}, stretches=[stretch("eval", n) for n in (100, 150)])
    assert [finding.subject for finding in thrash(both)] == [""]


def test_emptying_the_cache_in_every_step_is_named() -> None:
    every = set(range(1, COUNT + 1))
    columns: dict[str, Any] = {
        "num_alloc_retries": 0,
        "num_device_alloc": counter(COUNT, every, 12),
        "num_device_free": counter(COUNT, every, 12),
        "num_sync_all_streams": counter(COUNT, every),
        "step.duration_us": 100_000,
    }
    (finding,) = thrash(made_rank(COUNT, columns=columns))
    assert finding.summary == "12 calls for device memory in every step: the job empties its cache."
    assert finding.severity == "info"  # every step does it: what it costs is not known
    assert "empty_cache" in finding.remedies[0].action
    unexplained = {**columns, "num_sync_all_streams": 0}
    assert thrash(made_rank(COUNT, columns=unexplained)) == []
    growing = {**columns, "num_device_free": 0}
    assert thrash(made_rank(COUNT, columns=growing)) == []
    collected = made_rank(COUNT, columns=unexplained, settings="garbage_collection_threshold:0.6")
    assert "garbage_collection_threshold" in thrash(collected)[0].summary


def test_unknown_counters_say_nothing() -> None:
    assert thrash(job(set(range(60, 200)), changes={"num_alloc_retries": UNKNOWN})) == []
    assert thrash(made_rank(COUNT, columns={})) == []


def test_a_recorded_job_that_thrashed_before_it_ran_out_of_memory() -> None:
    found = [thrash(each) for each in prefixes(recorded_rank("oom__split128", total_bytes=3 << 30))]
    first = next(number for number, each in enumerate(found, 1) if each)
    assert (
        found[first - 1][0].summary == "Slow: the cache was flushed 4 times in the last 10 steps."
    )
    assert first == 30  # it ran out of memory in step 34


@pytest.mark.parametrize(
    "name", ["varlen__default", "fixed__default", "leak__default", "unet__gc60"]
)
def test_recorded_jobs_without_flushes_are_left_alone(name: str) -> None:
    assert [thrash(each) for each in prefixes(recorded_rank(name))] == [
        [] for _ in prefixes(recorded_rank(name))
    ]


def test_a_recorded_job_with_a_tight_limit_thrashes_on() -> None:
    # 44 flushes in 30 steps on the GPU; the same steps over and over.
    rank = recorded_rank("streams__limited")
    longer = {
        name: [
            *column,
            *(column + (column[-1] if name.startswith("num_") else 0)),
            *(column + (2 * column[-1] if name.startswith("num_") else 0)),
        ]
        for name, column in rank.steps.columns.items()
    }
    (finding,) = thrash(made_rank(90, columns=longer, total_bytes=280 * MIB))
    assert (finding.kind, finding.severity) == ("thrash", "warning")
    assert finding.evidence["flushes"] > 90
