"""A fast and even rise is told when it begins and when it has lasted; anything else is none."""

from __future__ import annotations

import pytest

from vramscope.steps.even_rise import LEAST_STEPS, TOLD_STEPS, EvenRise

MIB = 1 << 20


def told_after(mib: list[int]) -> list[int]:
    rise, found = EvenRise(), []
    for step, each in enumerate(mib):
        rise.step_ended(each * MIB)
        if rise.take():
            found.append(step)
    return found


def test_of_each_rise_it_is_told_twice() -> None:
    level, rise = [100] * 10, list(range(101, 141))
    assert told_after([*level, *range(101, 301)]) == [9 + LEAST_STEPS, 9 + TOLD_STEPS]
    back = [*level, *rise, *level, *rise]
    assert told_after(back) == [9 + LEAST_STEPS, 59 + LEAST_STEPS]


@pytest.mark.parametrize(
    "mib",
    [[100] * 200, [100 + 30 * (step % 9) for step in range(200)], [100] * 100 + [300] * 100],
    ids=["level", "noise", "a jump"],
)
def test_anything_else_is_none(mib: list[int]) -> None:
    assert told_after(mib) == []


def test_it_has_to_be_fast() -> None:
    rise, told = EvenRise(), []
    for step in range(200):
        rise.step_ended(100 * MIB + step * MIB // 4)
        told += [step] if rise.take() else []
    assert told == [4 * 17]
