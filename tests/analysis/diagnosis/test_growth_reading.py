"""Trend, report, use and sawtooth make one reading, and each rank is read once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.step_floors import (
    BASE,
    BLOCKS,
    GIB,
    MIB,
    at,
    group_of,
    held_by,
    leaking,
    rank_of,
    report_of,
    steps_of,
)
from vramscope_analysis.diagnosis.growth_reading import growth_reading

LIST = held_by("attribute", "T.results", "list of 40")


def test_the_same_evidence_is_read_once() -> None:
    rank = leaking(MIB)
    assert growth_reading(rank) is growth_reading(rank)


def test_growth_of_tensors_that_get_larger_is_not_suspicious() -> None:
    number = steps_of(300)
    larger = growth_reading(rank_of(BASE + number * MIB, BLOCKS + 0 * number))
    assert (larger.cause, larger.is_suspicious) == ("enlarged", False)
    assert growth_reading(leaking(MIB)).is_suspicious


def test_a_report_from_before_the_growth_says_nothing_about_it() -> None:
    rank = leaking(MIB, onset=200)
    old = replace(rank, growth=report_of(group_of(LIST), steps=(10, 14, 18, 22)))
    reading = growth_reading(old)
    assert (reading.verdict, reading.is_asked) == (None, False)


def test_a_report_that_explains_little_of_the_growth_is_none() -> None:
    looks = [BASE, BASE + 100 * MIB, BASE + 200 * MIB, BASE + 300 * MIB]
    reading = growth_reading(replace(leaking(MIB), growth=report_of(group_of(LIST), live=looks)))
    assert (reading.verdict, reading.is_asked) == (None, True)


def test_looks_that_were_to_tell_something_else_are_no_answer() -> None:
    risen = steps_of(300) // 50
    rank = rank_of(BASE + risen * 12 * MIB, BLOCKS + risen)
    short = report_of(steps=(99, 100, 101), live=[1, 1, 1])
    long = report_of(steps=(99, 150, 200), live=[1, 1, 1])
    assert not growth_reading(replace(rank, growth=short)).is_asked
    assert growth_reading(replace(rank, growth=long)).is_asked


def test_after_a_report_growth_may_pause() -> None:
    rank = at(leaking(MIB, onset=50, steps=300), 130)
    report = report_of(group_of(LIST), live=[BASE + (50 + look * 4) * MIB for look in range(4)])
    floor = rank.steps.columns["allocated_bytes.all.current"].copy()
    floor[120:] = floor[119]
    paused = replace(
        rank.steps, columns={**rank.steps.columns, "allocated_bytes.all.current": floor}
    )
    assert growth_reading(replace(rank, steps=paused)).growth is None
    assert growth_reading(replace(rank, steps=paused, growth=report)).verdict is not None


def test_a_forecast_is_there_when_the_end_is_near() -> None:
    assert growth_reading(replace(leaking(MIB), total_bytes=GIB + 512 * MIB)).forecast is not None
    assert growth_reading(replace(leaking(MIB), total_bytes=900 * GIB)).forecast is None
    assert growth_reading(leaking(MIB)).forecast is None


@pytest.mark.parametrize("rows", [0, 1, 5, 30])
def test_few_rows_are_no_growth(rows: int) -> None:
    assert growth_reading(at(leaking(MIB), rows)).growth is None
