"""A search ends by the time that it has used, and at last by the clock on the wall."""

from __future__ import annotations

import pytest

from vramscope.holders import time_box
from vramscope.holders.time_box import TimeBox


class Clocks:
    """The time of the thread, and that on the wall."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.wall_s = 0.0

    def thread_time(self) -> float:
        return self.cpu_s

    def perf_counter(self) -> float:
        return self.wall_s


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(time_box, "time", clocks)
    return clocks


def test_what_the_thread_has_used_counts(clocks: Clocks) -> None:
    box = TimeBox(1.0)
    assert (box.left_s, box.is_over) == (1.0, False)
    clocks.cpu_s, clocks.wall_s = 0.75, 2.0
    assert (box.left_s, box.is_over) == (0.25, False)
    clocks.cpu_s = 1.5
    assert (box.left_s, box.is_over) == (0.0, True)


def test_the_job_does_not_wait_for_ever_where_others_have_the_processor(clocks: Clocks) -> None:
    box = TimeBox(1.0)
    clocks.wall_s = time_box.WALL_FACTOR + 0.1
    assert box.is_over


def test_a_short_one_comes_to_its_end_even_there(clocks: Clocks) -> None:
    box = TimeBox(0.001)
    clocks.wall_s = time_box.LEAST_WALL_S - 0.01
    assert not box.is_over
    clocks.wall_s = time_box.LEAST_WALL_S + 0.01
    assert box.is_over
