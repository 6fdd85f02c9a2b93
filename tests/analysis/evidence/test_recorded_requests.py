"""What the steps of a recording asked for: the largest, and what comes again in each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_moments import FORWARD_STACK, MIB, entry, memory, recorded, scope
from vramscope_analysis.evidence.recorded_requests import RecordedRequests, recorded_requests

STEP = "Optimizer.step#Adam.step"


def steps_of(*sizes: list[int], last_is_open: bool = False) -> RecordedRequests | None:
    """Steps of 100 us, each with requests of so many MiB, at most one of them live."""
    entries: list[dict[str, Any]] = []
    scopes: list[dict[str, Any]] = []
    for number, asked in enumerate(sizes):
        for at, size in enumerate(asked):
            time_us = 100 * number + at + 1
            entries += [
                entry(action, 0, size * MIB, time_us=time_us, stack=FORWARD_STACK)
                for action in ("alloc", "free_requested", "free_completed")
            ]
        if last_is_open and number == len(sizes) - 1:
            break
        scopes += scope(STEP, 100 * number + 90, 100 * number + 99)
    return recorded_requests(memory(entries, annotations=scopes))


def test_each_step_asks_for_at_least_the_least_of_their_largest() -> None:
    # What comes before the first end is no step as the others are: the recording began in it.
    found = steps_of([500], [4, 30, 4], [40, 4, 8], [4, 4, 20])
    assert found is not None
    assert (found.count, found.steps) == (10, 3)
    assert found.largest.bytes == 500 * MIB
    assert found.of_steps == (30 * MIB, 40 * MIB, 20 * MIB)
    assert found.every_step is not None
    assert found.every_step.bytes == 20 * MIB
    assert found.every_step.place == "model.py:20 forward"
    assert [(each.bytes // MIB, each.a_step) for each in found.recurring] == [(4, 1.7)]


def test_a_step_that_asks_for_nothing_makes_none_of_every_step() -> None:
    found = steps_of([1], [4, 30], [], [8])
    assert found is not None
    assert (found.every_step, found.recurring) == (None, ())


def test_without_a_whole_step_only_the_largest_is_told() -> None:
    found = steps_of([7, 9])
    assert found is not None
    assert (found.steps, found.largest.bytes, found.every_step, found.of_steps) == (
        0,
        9 * MIB,
        None,
        (),
    )


def test_a_window_that_an_agent_recorded_begins_and_ends_with_a_step() -> None:
    # Its scopes tell of all ends but that of the last step.
    found = steps_of([4, 30, 4], [4, 20, 4], [4, 40, 4], last_is_open=True)
    assert found is not None
    assert found.of_steps == (30 * MIB, 20 * MIB, 40 * MIB)
    cut = steps_of([4, 30, 4], [4, 20, 4], [4, 40, 4], [2], last_is_open=True)
    assert cut is not None
    assert cut.of_steps == found.of_steps
    first = steps_of([4] * 9, [4, 20, 4], [4, 40, 4])
    assert first is not None
    assert first.of_steps == (20 * MIB, 40 * MIB)


def test_without_a_request_there_is_nothing() -> None:
    assert recorded_requests(memory([entry("segment_alloc", 0, 2 * MIB)])) is None


def test_what_was_refused_was_asked_for() -> None:
    entries = [entry("alloc", 0, MIB), entry("oom", 0, 700 * MIB, stream=9)]
    found = recorded_requests(memory(entries))
    assert found is not None
    assert (found.largest.bytes, found.largest.stream) == (700 * MIB, 9)


@pytest.mark.parametrize(
    ("name", "steps", "every", "largest"),
    [
        ("fixed__default", 19, 125.0, 125.0),
        ("varlen__default", 39, 24.9, 161.9),
        # It ran out with a request that no step before it had made.
        ("oom__default", 30, 21.5, 197.3),
    ],
)
def test_recorded_jobs(name: str, steps: int, every: float, largest: float) -> None:
    found = recorded_requests(recorded(name))
    assert found is not None
    assert found.every_step is not None
    assert found.steps == len(found.of_steps) == steps
    assert found.every_step.bytes / MIB == pytest.approx(every, abs=0.1)
    assert found.largest.bytes / MIB == pytest.approx(largest, abs=0.1)
    assert found.recurring
