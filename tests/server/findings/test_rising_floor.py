"""A fast rise is told when it has come and when it has lasted; noise and a jump are none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.step_floors import MIB, leaking
from vramscope_analysis.diagnosis.floors import ALLOCATED, WARM_UP_ROWS, floors_of
from vramscope_analysis.diagnosis.trend import FAST_WINDOW, FIRST_WINDOW, growth_of
from vramscope_server.findings.rising_floor import RisingFloor


def told_after(values: list[float], batch: int = 1) -> list[int]:
    """After how many steps it was told."""
    floor = RisingFloor()
    return [
        at + batch
        for at in range(0, len(values), batch)
        if floor.take(np.array(values[at : at + batch]))
    ]


def test_it_is_told_when_judges_can_speak_of_it_and_when_it_has_lasted() -> None:
    rank = leaking(MIB)
    allocated = rank.steps.numbers(ALLOCATED)
    first, second, third = told_after(allocated.tolist())
    assert second == first + 1
    growth = growth_of(floors_of(rank.steps.before(third)))
    assert growth is not None
    assert FIRST_WINDOW <= growth.steps <= FIRST_WINDOW + 4
    assert growth_of(floors_of(rank.steps.before(first - 2))) is None
    assert growth_of(floors_of(rank.steps.before(second))) is not None


@pytest.mark.parametrize("batch", [7, 25, 100])
def test_steps_come_in_batches(batch: int) -> None:
    rising = [100.0 * MIB] * 50 + [(100.0 + step) * MIB for step in range(250)]
    told = told_after(rising, batch)
    assert len(told) in (2, 3)  # two at once may be one
    assert 50 + FAST_WINDOW - 4 <= told[0] <= 50 + FAST_WINDOW + batch


@pytest.mark.parametrize(
    "values",
    [
        [100.0] * 300,
        [100.0 + 40 * (step % 7) for step in range(300)],
        [100.0] * 150 + [500.0] * 150,
        [100.0 + step / 4 for step in range(300)],
        [100.0 + step for step in range(WARM_UP_ROWS)] + [108.0] * 300,
        [float("nan")] * 300,
    ],
    ids=["level", "noise", "a jump", "slow", "warm-up", "unknown"],
)
def test_nothing_is_told_of(values: list[float]) -> None:
    assert told_after([each * MIB for each in values], 5) == []


def test_a_second_rise_is_told_again() -> None:
    rise = list(range(100, 140))
    values = [*([100] * 40), *rise, *([140] * 60), *(each + 40 for each in rise), *([180] * 40)]
    told = told_after([float(each * MIB) for each in values])
    assert len(told) == 4
