"""Two bounds of the peak at a size that was not tried, and what bends them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.made_batches import FIXED, GRADIENTS, SAMPLE, batch_rank, line, planned
from tests.support.made_ranks import GIB, MIB
from vramscope_analysis.batch.batch_steps import batch_steps
from vramscope_analysis.batch.peak_model import PeakModel, last_that, peak_model


def optimizer_first(size: int) -> int:
    """With few samples the optimizer is highest, with many the backward pass."""
    return max(FIXED + GRADIENTS + 3 * GIB, FIXED + GIB + SAMPLE * size)


def grown(size: int) -> int:
    return FIXED + int(SAMPLE * size**1.3)


def model(*parts: tuple[int, int], peak: Callable[[int], int] = line) -> PeakModel:
    return peak_model(batch_steps(batch_rank(planned(*parts), peak)))


@pytest.mark.parametrize("peak", [line, optimizer_first])
@pytest.mark.parametrize("sizes", [(8,), (4, 8), (2, 4, 8), (8, 16), (16, 24)])
@pytest.mark.parametrize("asked", [8, 16, 24, 40, 64, 200])
def test_the_truth_lies_between_the_bounds(
    peak: Callable[[int], int], sizes: tuple[int, ...], asked: int
) -> None:
    found = model(*((size, 6) for size in sizes), peak=peak)
    if asked >= found.largest:
        assert found.at_least(asked) <= peak(asked) + MIB
    assert found.at_most(asked) >= peak(asked) - MIB


def test_a_size_that_was_tried_is_known() -> None:
    found = model((8, 6), (16, 6), (24, 6))
    assert found.at_most(16) == pytest.approx(line(16))
    assert found.at_most(24) == found.at_least(24) == pytest.approx(line(24))


def test_the_bounds_close_in_as_larger_sizes_are_tried() -> None:
    room = 38 * GIB
    few, more = model((8, 9)), model((8, 9), (48, 9))
    truth = (38 - 7) * 2
    for each in (few, more):
        high = each.largest_above(room)
        assert high is not None
        assert each.largest_below(room) <= truth <= high
    assert few.largest_below(room) / truth < 0.9
    assert more.largest_below(room) / truth > 0.95


def test_of_a_peak_in_the_optimizer_no_upper_end_is_known() -> None:
    columns = {"step.peak_part": 3}
    steps = batch_steps(batch_rank([8] * 9, optimizer_first, columns=columns))
    assert peak_model(steps).largest_above(38 * GIB) is None


def test_what_grows_faster_than_in_proportion_is_carried_on() -> None:
    found = model((8, 6), (16, 6), peak=grown)
    assert found.exponent == pytest.approx(0.3, abs=0.01)
    assert found.at_most(64) == pytest.approx(grown(64), rel=0.02)


def test_of_lengths_the_longest_counts_even_if_the_largest_size_has_not_met_it() -> None:
    peaks = [FIXED + size * SAMPLE * (3 if at == 20 else 1) for at, size in enumerate([8] * 60)]
    peaks += [FIXED + 16 * SAMPLE] * 6
    columns = {"step.peak_allocated_bytes": peaks}
    found = peak_model(batch_steps(batch_rank(planned((8, 60), (16, 6)), columns=columns)))
    assert found.is_varying
    assert found.spread == pytest.approx(3)
    assert found.at_most(16) == FIXED + 3 * 16 * SAMPLE


def test_the_largest_that_fits_is_found_whatever_its_size() -> None:
    for most in (0, 1, 2, 3, 1000):
        assert last_that(most.__ge__) == most
