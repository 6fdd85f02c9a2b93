"""What is wanted at the end of a step is done there, and what nobody wants costs nothing."""

from __future__ import annotations

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.steps.at_boundary import INTERVAL_NS, AtBoundary


class Part:
    """A part that notes the steps at which it ran. Implements ``BoundaryPart``."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.others: dict[str, int] = {}
        self.goes_on = False
        self.ran_at: list[int] = []
        self.raises = False

    @property
    def wanted(self) -> tuple[object, ...]:
        return (self.waiting, self.others)

    def at_boundary(self, step: int) -> None:
        self.ran_at.append(step)
        self.waiting.clear()
        self.others.clear()
        if self.raises:
            raise KeyboardInterrupt


class Rig:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.one, self.other = Part(), Part()
        self.lasts = 0
        self.at_boundary = AtBoundary((self.one, self.other), self._last, self.clock)
        self.step = 0
        self.end_steps(1)  # the first one looks at everything
        for part in (self.one, self.other):
            part.ran_at.clear()

    def _last(self) -> None:
        self.lasts += 1

    def end_steps(self, count: int, step_s: float = 0.001) -> None:
        for _ in range(count):
            self.step += 1
            self.at_boundary(self.step)
            self.clock.advance(step_s)


def test_while_nobody_wants_anything_all_of_them_run_ten_times_a_second() -> None:
    rig = Rig()
    rig.end_steps(1000)
    assert len(rig.one.ran_at) == len(rig.other.ran_at) == 1000 * 1e6 / INTERVAL_NS
    assert rig.lasts == 1 + len(rig.one.ran_at)


def test_of_long_steps_each_runs_them() -> None:
    rig = Rig()
    rig.end_steps(5, step_s=0.2)
    rig.end_steps(1)
    assert len(rig.one.ran_at) == 5


def test_what_is_wanted_is_done_at_the_very_next_end_of_a_step() -> None:
    rig = Rig()
    rig.end_steps(1)
    rig.other.waiting.append("a command")
    rig.end_steps(2)
    assert rig.one.ran_at == rig.other.ran_at == [3]
    rig.one.others["a look"] = 1
    rig.end_steps(2)
    assert rig.one.ran_at == [3, 5]


def test_what_goes_on_has_every_step_until_it_is_over() -> None:
    rig = Rig()
    rig.one.waiting.append("begins a window")
    rig.one.goes_on = True
    rig.end_steps(3)
    rig.one.goes_on = False
    rig.end_steps(3)
    assert rig.one.ran_at == [2, 3, 4, 5]


def test_a_part_that_is_interrupted_is_asked_again_at_the_next_step() -> None:
    rig = Rig()
    rig.one.waiting.append("a command")
    rig.one.raises = True
    with pytest.raises(KeyboardInterrupt):
        rig.end_steps(1)
    assert rig.other.ran_at == []
    rig.one.raises = False
    rig.end_steps(1)
    assert rig.other.ran_at == [2 + 1]
