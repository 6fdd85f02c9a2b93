"""A window counts its steps and knows when it has them."""

from __future__ import annotations

from typing import Any

from vramscope.history.host_memory import HostMemoryBudget
from vramscope.history.window import Window
from vramscope_protocol.codec import MAX_SNAPSHOT_STEPS
from vramscope_protocol.parameters import HistoryParams


def window(**params: Any) -> Window:
    return Window(HistoryParams(**params), 1000, HostMemoryBudget(1 << 20), "command", "c")


def test_it_has_all_steps_when_it_has_them() -> None:
    each = window(steps=2)
    each.mark_step(7)
    has_first = each.has_all_steps
    assert each.progress == "1 of 2 steps"
    each.mark_step(8)
    assert (has_first, each.has_all_steps) == (False, True)
    assert [step for step, _ in each.marks] == [7, 8]


def test_one_without_an_end_has_none() -> None:
    each = window()
    each.mark_step(1)
    assert not each.has_all_steps
    assert each.progress == "1 steps"


def test_marks_are_bounded_and_times_rise() -> None:
    each = window()
    for step in range(MAX_SNAPSHOT_STEPS + 5):
        each.mark_step(step)
    assert len(each.marks) == MAX_SNAPSHOT_STEPS
    assert each.marks[0][0] == 5
    times = [time_us for _, time_us in each.marks]
    assert times == sorted(times)


def test_live_blocks_alone_always_have_stacks() -> None:
    assert window(mode="state", stacks=False).has_stacks
    assert not window(mode="all", stacks=False).has_stacks
