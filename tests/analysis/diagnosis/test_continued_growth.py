"""What was found by looking goes on, pauses, or has stopped."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import BASE, MIB, leaking, rank_of, steps_of
from vramscope_analysis.diagnosis.continued_growth import continues
from vramscope_analysis.diagnosis.floors import floors_of


def test_what_was_found_by_looking_goes_on_until_it_stops() -> None:
    rank = leaking(MIB, onset=50, steps=300)
    live = [BASE + 50 * MIB, BASE + 60 * MIB]
    goes_on = continues(floors_of(rank.steps), (101, 111), live)
    assert goes_on is not None
    assert goes_on.slope_bytes == pytest.approx(MIB, rel=0.2)
    stopped = rank_of(BASE + np.minimum(steps_of(300), 60) * MIB)
    assert continues(floors_of(stopped.steps), (51, 61), [BASE + 50 * MIB, BASE + 60 * MIB]) is None
    assert continues(floors_of(rank.steps), (101,), [BASE]) is None


def test_half_a_kib_a_step_is_not_worth_going_on_about() -> None:
    rank = rank_of(BASE + steps_of(300) * 512)
    assert continues(floors_of(rank.steps), (101, 201), [BASE, BASE + 100 * 512]) is None


@pytest.mark.parametrize("epoch", [40, 100])
def test_a_list_that_is_filled_anew_in_each_epoch_is_no_growth_that_goes_on(epoch: int) -> None:
    at = steps_of(2 * epoch)
    rank = rank_of(BASE + at % epoch * MIB)
    looks = tuple(int(step) for step in at[epoch + 4 : epoch + 20 : 5])
    live = [BASE + step % epoch * MIB for step in looks]
    for row in range(epoch + 20, 2 * epoch - 4):
        assert continues(floors_of(rank.steps.before(row)), looks, live) is None
    # Above what there has been, it goes on.
    rank = rank_of(BASE + np.where(at < epoch, at // 4, at % epoch) * MIB)
    assert continues(floors_of(rank.steps), looks, live) is not None


@pytest.mark.parametrize("every", [1, 20])
def test_what_is_full_is_told_no_longer_than_it_took_twice_to_rise(every: int) -> None:
    filled = BASE + np.minimum(steps_of(1000), 700) // every * every * MIB // 16
    looks = (241, 251, 261, 281)
    floors = floors_of(rank_of(filled).steps)
    live = [int(floors.allocated[floors.step == step][0]) for step in looks]
    told = [
        rows
        for rows in range(300, 1000)
        if continues(floors_of(rank_of(filled[:rows]).steps), looks, live) is not None
    ]
    assert 690 <= max(told) <= 700 + max(30, 2 * every + 5)
    assert set(told) >= set(range(310, 700))
