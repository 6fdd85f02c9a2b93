"""Few real moments out of many, and no peak lost."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tests.support.made_moments import (
    KIB,
    MIB,
    block,
    entry,
    memory,
    recorded,
    segment,
    two_steps,
)
from vramscope_analysis.moments.groups import By
from vramscope_analysis.moments.timeline import MOST_GROUPS, timeline_of


@pytest.mark.parametrize("by", get_args(By))
def test_layers_add_up_to_what_is_live(by: By) -> None:
    made = recorded("fixed__default")
    timeline = timeline_of(made, by, points=300)
    assert len(timeline.moments) <= 300
    assert (timeline.bytes.sum(axis=0) == timeline.total).all()
    assert (timeline.total == made.live_bytes[timeline.moments + 1]).all()
    assert (timeline.reserved == made.reserved_bytes[timeline.moments + 1]).all()
    assert timeline.bytes.min() >= 0
    assert timeline.total.max() == made.live_bytes.max()
    assert timeline.peak == made.peak_moment
    if by == "stack":
        assert len(timeline.groups) <= MOST_GROUPS + 1


def test_each_layer_is_what_its_blocks_hold() -> None:
    made = two_steps()
    timeline = timeline_of(made, "category")
    words = [group.label for group in timeline.groups]
    at_peak = timeline.moments.tolist().index(made.peak_moment)
    held = dict(zip(words, (timeline.bytes[:, at_peak] // MIB).tolist(), strict=True))
    assert held == {"activations": 4, "gradients": 2, "optimizer": 1, "other": 2}


def test_a_window_shows_its_own_highest() -> None:
    made = two_steps()
    timeline = timeline_of(made, "stack", start=100, end=165)
    assert timeline.moments.tolist()[0] == 1, "the state that the window begins with"
    assert timeline.peak == 3
    assert (timeline.x >= 100).all()
    assert (timeline.x <= 165).all()


def test_the_highest_of_each_column_and_what_stayed_before_a_pause() -> None:
    entries = []
    for i in range(1000):
        at = 1_000_000 + i
        entries.append(entry("alloc", i * MIB, 512 * KIB, time_us=at))
        if i % 2:
            entries.append(entry("free_completed", i * MIB, 512 * KIB, time_us=at))
    entries.append(entry("alloc", 1 << 40, 512, time_us=3_000_000))
    made = memory(entries)
    timeline = timeline_of(made, "size", points=12)
    assert len(timeline.moments) <= 12
    before_pause = int(np.flatnonzero(made.time_us < 2_000_000)[-1])
    assert before_pause in timeline.moments
    assert timeline.total.max() == made.live_bytes.max()


def test_entries_without_times_are_counted() -> None:
    made = memory([entry("alloc", i * MIB, 512) for i in range(5)])
    timeline = timeline_of(made, "size", start=2, end=3)
    assert timeline.unit == "entry"
    assert timeline.x.tolist() == [2, 2, 3]
    assert timeline.moments.tolist() == [1, 2, 3]


def test_a_window_behind_the_end_shows_what_stayed() -> None:
    made = two_steps()
    timeline = timeline_of(made, "stack", start=9999)
    assert timeline.moments.tolist() == [made.last_moment]


def test_a_snapshot_without_history_is_one_moment() -> None:
    timeline = timeline_of(memory([], [segment(0, [block(MIB, MIB)])]), "stack")
    assert (timeline.moments.tolist(), timeline.total.tolist()) == ([-1], [MIB])
    assert (timeline.start, timeline.end) == (0, 0)


def test_everything_else_gathers_what_is_too_small() -> None:
    entries = [
        entry("alloc", i * MIB, (20 - i) * KIB, time_us=i + 1, stack=[("/a/b.py", i, "f")])
        for i in range(15)
    ]
    timeline = timeline_of(memory(entries), "stack")
    assert timeline.groups[0].label == "b.py:0 f"
    assert timeline.groups[-1].label == "everything else"
    assert len(timeline.groups) == MOST_GROUPS + 1
