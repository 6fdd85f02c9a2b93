"""Paces are those of the end, useless is what no request gets, and steps change their time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.step_floors import BASE, BLOCKS, KIB, MIB, leaking, rank_of, steps_of
from vramscope_analysis.diagnosis.floors import ALLOCATED, floors_of
from vramscope_analysis.diagnosis.paces import (
    LARGE_SEGMENT_BYTES,
    UselessMemory,
    recent_paces,
    step_times,
    useless_memory,
)
from vramscope_analysis.diagnosis.trend import Growth, growth_of
from vramscope_analysis.evidence.run_evidence import RankEvidence


def growth(rank: RankEvidence) -> Growth:
    found = growth_of(floors_of(rank.steps))
    assert found is not None
    return found


def test_an_even_leak_has_one_pace() -> None:
    rank = leaking(MIB, steps=400)
    assert recent_paces(rank.steps, ALLOCATED, growth(rank)) == (MIB, MIB)


def test_a_leak_that_quickens_has_its_new_pace_as_the_fastest() -> None:
    number = steps_of(400)
    kept = np.maximum(number - 50, 0)
    floor = BASE + kept * MIB + np.maximum(number - 330, 0) * 2 * MIB
    rank = rank_of(floor, BLOCKS + kept)
    slow, fast = recent_paces(rank.steps, ALLOCATED, replace(growth(rank), slope_bytes=MIB))
    assert slow == pytest.approx(1.9 * MIB, rel=0.2)
    assert fast == 3 * MIB


def test_too_few_rises_to_tell_a_pace_leave_that_of_the_whole() -> None:
    rank = leaking(MIB, steps=400, every=40)
    seldom = Growth(MIB, 0.0, 50, 399, BASE, 350 * MIB, True, 1 / 40, 50, 399, period_steps=40)
    assert recent_paces(rank.steps, ALLOCATED, seldom) == (MIB, MIB)


def test_a_column_that_is_not_known_leaves_the_pace_of_the_whole() -> None:
    found = growth(leaking(MIB))
    rank = rank_of([BASE] * 400)
    assert recent_paces(rank.steps, "no.such", found) == (found.slope_bytes, found.slope_bytes)


def useless(stranded: int | NDArray[np.int64], over: int | NDArray[np.int64]) -> UselessMemory:
    none = 0 * steps_of(400)
    columns: dict[str, NDArray[np.int64]] = {
        "step.peak_allocated_bytes": none + BASE,
        "step.peak_reserved_bytes": none + BASE + over,
        "inactive_split_bytes.all.current": none + stranded,
    }
    return useless_memory(rank_of(none + BASE, columns=columns).steps, 0)


def test_pieces_are_useless_as_far_as_the_peaks_leave_them() -> None:
    segment = LARGE_SEGMENT_BYTES
    assert useless(64 * MIB, 100 * MIB) == UselessMemory(64 * MIB + segment, 0.0)
    # What lies in pieces at a step's end and is used at its peak is of use.
    assert useless(64 * MIB, 10 * MIB) == UselessMemory(10 * MIB + segment, 0.0)
    # Whole segments go back to the device when it is full.
    assert useless(0, 900 * MIB) == UselessMemory(segment, 0.0)


def test_pieces_that_grow_along_have_a_pace() -> None:
    number = steps_of(400)
    found = useless(number * 256 * KIB, number * 256 * KIB)
    assert found.bytes_per_step == pytest.approx(256 * KIB, rel=0.05)
    falling = useless((400 - number) * MIB, (400 - number) * MIB)
    assert falling.bytes_per_step == 0


def test_without_peaks_of_what_is_reserved_nothing_is_claimed() -> None:
    assert useless_memory(leaking(MIB).steps, 50) == UselessMemory()


def timed(seconds: list[float]) -> tuple[float, float]:
    """Steps of so many seconds, a hundred of each."""
    rank = rank_of([BASE] * 100 * len(seconds))
    ends = np.cumsum(np.repeat(seconds, 100)) * 1e9
    return step_times(replace(rank.steps, time_ns=ends.astype(np.int64)), 1)


def test_steps_take_as_long_as_they_did_at_least_and_at_most() -> None:
    assert timed([1.0]) == pytest.approx((1.0, 1.0))
    assert timed([1.0, 2.0, 1.0, 1.0]) == pytest.approx((1.0, 2.0), rel=0.02)


def test_steps_that_become_slower_or_faster_may_go_on_so() -> None:
    fast, slow = timed([1.0, 1.0, 1.0, 2.0])
    assert (fast, slow) == pytest.approx((1.0, 4.0), rel=0.05)
    fast, slow = timed([2.0, 2.0, 2.0, 1.0])
    assert (fast, slow) == pytest.approx((0.5, 2.0), rel=0.05)


def test_time_without_steps_is_not_known() -> None:
    assert step_times(rank_of([]).steps, 0) == (0.0, 0.0)
    assert step_times(rank_of([BASE]).steps, 0) == (0.0, 0.0)
