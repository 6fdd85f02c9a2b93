"""What counters that are not always reset tell of an interval: the truth, or that it is unknown."""

from __future__ import annotations

import random

import pytest

from vramscope.peaks.interval_peaks import IntervalPeaks
from vramscope.peaks.peak_layout import FourPeaks
from vramscope_protocol.columns import UNKNOWN


def four(value: int) -> FourPeaks:
    return (value, value, value, value)


def test_before_the_first_look_nothing_is_known() -> None:
    interval = IntervalPeaks()
    interval.saw(four(100), is_reset=False)
    assert interval.take() == four(UNKNOWN)


def test_after_a_reset_the_counter_is_the_peak() -> None:
    interval = IntervalPeaks()
    interval.saw(four(100), is_reset=True)
    interval.take()
    interval.saw(four(40), is_reset=True)
    assert interval.take() == four(40)


def test_without_a_reset_it_is_known_only_where_it_has_risen() -> None:
    interval = IntervalPeaks()
    interval.saw(four(100), is_reset=False)
    interval.take()
    interval.saw((100, 120, 100, 101), is_reset=False)
    assert interval.take() == (UNKNOWN, 120, UNKNOWN, 101)


def test_what_a_reset_of_the_job_hides_still_counts() -> None:
    interval = IntervalPeaks()
    interval.saw(four(10), is_reset=True)
    interval.take()
    interval.saw(four(90), is_reset=True)  # the job resets
    interval.saw(four(30), is_reset=True)
    assert interval.take() == four(90)


def test_a_reset_of_the_job_does_not_make_a_bound_a_peak() -> None:
    interval = IntervalPeaks()
    interval.saw(four(100), is_reset=False)
    interval.take()
    interval.saw(four(100), is_reset=True)  # perhaps the interval came to 99, perhaps not
    interval.saw(four(30), is_reset=False)
    assert interval.take() == four(UNKNOWN)
    interval.saw(four(130), is_reset=False)
    assert interval.take() == four(130)


def test_what_could_not_be_read_makes_this_interval_and_the_next_look_unknown() -> None:
    interval = IntervalPeaks()
    interval.saw(four(1), is_reset=True)
    interval.take()
    interval.missed()
    interval.saw(four(50), is_reset=False)
    assert interval.take() == four(UNKNOWN)
    interval.saw(four(51), is_reset=False)
    assert interval.take() == four(51)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_is_always_the_truth(seed: int) -> None:
    rng = random.Random(seed)
    interval = IntervalPeaks()
    current = counter = truth = 0
    known = 0
    for number in range(400):
        for _ in range(rng.randrange(4)):
            current = rng.randrange(100)
            counter, truth = max(counter, current), max(truth, current)
            if rng.random() < 0.2:
                interval.saw(four(counter), is_reset=True)
                counter = current
        is_reset = rng.random() < 0.5
        interval.saw(four(counter), is_reset=is_reset)
        counter = current if is_reset else counter
        told = set(interval.take())
        assert told in ({truth}, {UNKNOWN})
        known += number > 0 and told == {truth}
        truth = current
    assert 100 < known < 400


def test_the_end_of_an_interval_is_a_look_and_its_peaks() -> None:
    draw = random.Random(7)
    one, other = IntervalPeaks(), IntervalPeaks()
    for _ in range(2000):
        peaks = four(draw.randrange(1000))
        is_reset = draw.random() < 0.8
        if draw.random() < 0.3:  # the job resets in between
            for interval in (one, other):
                interval.saw(four(500), is_reset=True)
        other.saw(peaks, is_reset=is_reset)
        assert one.end(peaks, is_reset=is_reset) == other.take()
