"""Recorded jobs that ran out of memory, judged by what a GPU did."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.support.allocator_traces import load_snapshot
from tests.support.made_moments import (
    FORWARD,
    FORWARD_STACK,
    LOOP_STACK,
    block,
    entry,
    memory,
    segment,
)
from tests.support.made_ooms import GIB, MIB
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.oom import diagnose_oom
from vramscope_analysis.diagnosis.oom_snapshot import oom_reports_of
from vramscope_analysis.diagnosis.settings_advice import trials_of
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.replay import Recording, advise


@lru_cache(maxsize=4)
def report(name: str) -> OomReport:
    (found,) = oom_reports_of(RecordedMemory.of(load_snapshot(name)))
    return found


@lru_cache(maxsize=4)
def finding(name: str) -> Finding:
    advice = advise(Recording.from_snapshot(load_snapshot(name)))
    return diagnose_oom(report(name), trials=trials_of(advice))


@pytest.mark.parametrize(("name", "steps"), [("oom__default", 31), ("oom__split128", 33)])
def test_the_moment_is_what_pytorch_told(name: str, steps: int) -> None:
    told = report(name)
    assert (told.step, len(told.steps)) == (steps, steps)
    # The job was given 3 GiB; nothing in the snapshot says so.
    assert told.allowed_bytes == 3 * GIB
    assert told.recovered_step is None
    assert told.request_bytes is not None
    assert told.segment_bytes is not None
    assert 0 <= told.segment_bytes - told.request_bytes < 2 * MIB


def test_sequences_that_get_longer_are_the_cause_and_pieces_are_told() -> None:
    """Peaks rose by 70 MiB with every step; PyTorch said 198 MiB, 413.97 MiB in pieces."""
    told = finding("oom__default")
    assert told.evidence["cause"] == "growing_demand"
    assert told.summary == (
        "Out of memory at step 31: asked for 197 MiB, the largest piece left was 166 MiB."
    )
    assert "grew by 70.3 MiB with every step" in told.detail
    assert "574 MiB were free in all, but in pieces" in told.detail
    assert told.remedies[0].action.startswith("bound the size of a batch")
    expandable = next(r for r in told.remedies if "expandable_segments:True" in r.fix)
    assert "lasts for about 5 steps" in expandable.why


def test_settings_that_the_job_had_are_not_advised_and_failures_are_told() -> None:
    told = finding("oom__split128")
    assert told.evidence["cause"] == "growing_demand"
    text = "\n".join(remedy.fix for remedy in told.remedies)
    assert "max_split_size_mb:128" not in text
    assert "expandable_segments:True" in text
    assert "max_split_size_mb:64: runs out of memory" in told.evidence["tried"]


def test_a_batch_is_halved_as_far_as_the_recorded_job_itself_shows() -> None:
    """Half of what the batch needed at step 31 is what step 13 or so had, which had room."""
    half = next(r for r in finding("oom__default").remedies if "half of its size" in r.action)
    assert half.predicted_bytes is not None
    needed = finding("oom__default").evidence["needed_bytes"]
    assert needed - half.predicted_bytes < 2 * GIB


def test_refusals_that_the_job_survived_say_so() -> None:
    reports = oom_reports_of(RecordedMemory.of(load_snapshot("oom_retry__default")))
    assert [each.recovered_step is not None for each in reports] == [True, True, True]
    assert {diagnose_oom(each).severity for each in reports} == {"warning"}


def test_a_limit_that_is_known_is_not_inferred() -> None:
    recorded = RecordedMemory.of(load_snapshot("oom__default"))
    assert oom_reports_of(recorded, 4 * GIB)[0].allowed_bytes == 4 * GIB


def test_a_snapshot_without_refusals_has_no_reports() -> None:
    assert oom_reports_of(RecordedMemory.of(load_snapshot("fixed__default"))) == []


def test_stacks_name_the_line_that_asked_and_what_was_live() -> None:
    live = [block(40 * MIB, 40 * MIB, stack=FORWARD_STACK) for _ in range(5)]
    trace = [
        entry("segment_alloc", 0, 200 * MIB, time_us=1),
        *(
            entry("alloc", n * 40 * MIB, 40 * MIB, time_us=2 + n, stack=FORWARD_STACK)
            for n in range(5)
        ),
        entry("oom", 10 * MIB, 90 * MIB, time_us=9, stack=LOOP_STACK),
    ]
    (told,) = oom_reports_of(memory(trace, [segment(0, live)]))
    (row,) = told.by_stack
    assert (row["file"], row["line"], row["function"]) == (FORWARD[0], FORWARD[1], "forward")
    assert (row["bytes"], row["count"], row["category"]) == (200 * MIB, 5, "activations")
    assert told.by_size == ({"requested_bytes": 40 * MIB, "count": 5, "bytes": 200 * MIB},)
    found = diagnose_oom(told)
    assert (found.subject, found.evidence["cause"]) == ("train.py:30", "too_big")
    assert any("checkpoint the module of model.py:20" in r.action for r in found.remedies)
