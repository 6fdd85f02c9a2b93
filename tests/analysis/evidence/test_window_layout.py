"""The layout of a recorded moment: gradients go, what outlives the recording stays."""

from __future__ import annotations

from tests.support.made_moments import (
    LOOP_STACK,
    MIB,
    block,
    entry,
    memory,
    recorded,
    segment,
    two_steps,
)
from vramscope_analysis.evidence.window_layout import window_layout


def test_it_is_of_the_first_moment_with_most_reserved() -> None:
    layout = window_layout(recorded("varlen__default"))
    assert layout.reserved_bytes == 3_368_026_112
    assert layout.time_ns > 0
    assert [(pool.pool, pool.stream) for pool in layout.pools] == [("large", 0), ("small", 0)]


def test_a_block_that_goes_within_the_recording_pins_nothing() -> None:
    goes = [
        entry("segment_alloc", 0, 40 * MIB),
        entry("alloc", 0, MIB, stack=LOOP_STACK),
        entry("segment_alloc", 40 * MIB, 2 * MIB),
    ]
    stays = window_layout(memory(goes, [segment(0, [block(MIB, MIB), block(39 * MIB)])]))
    assert stays.pinned_bytes == 39 * MIB
    assert stays.pins[0].name == "train.py:30 train_step"
    gone = [entry("free_requested", 0, MIB), entry("free_completed", 0, MIB)]
    assert window_layout(memory([*goes, *gone], [segment(0, [block(40 * MIB)])])).pinned_bytes == 0


def test_a_gradient_does_not_stay() -> None:
    made = two_steps()
    assert window_layout(made, made.last_moment).pinned_bytes == 16 * MIB
    entries = [
        entry("segment_alloc", 0, 20 * MIB, time_us=1),
        entry("alloc", 0, MIB, time_us=5),
        entry("alloc", MIB, MIB, time_us=20, stack=LOOP_STACK),
    ]
    held = [segment(0, [block(MIB, MIB), block(MIB, MIB, stack=LOOP_STACK), block(18 * MIB)])]
    # What has no stack among those that have one is of the backward pass; it is there at the end.
    scopes = [
        {"name": "Optimizer.step#Adam.step", "stage": stage, "device": 0, "time_us": at}
        for stage, at in (("START", 10), ("END", 30))
    ]
    last = memory(entries, held, annotations=scopes)
    layout = window_layout(last, last.last_moment)
    assert (layout.free_bytes, layout.pinned_bytes) == (18 * MIB, 0)
