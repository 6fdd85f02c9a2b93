"""What grew between two moments."""

from __future__ import annotations

from typing import Any

from tests.support.made_moments import (
    FORWARD_STACK,
    LOOP_STACK,
    MIB,
    block,
    last_steps,
    memory,
    recorded,
    segment,
    two_steps,
)
from vramscope_analysis.moments.growth import growth_between
from vramscope_analysis.moments.recorded_memory import RecordedMemory


def test_growth_by_stack_with_what_survived() -> None:
    made = two_steps()
    first, second = made.step_ends
    growth = growth_between(made, first.moment, made, second.moment)
    grown = growth.rows[0]
    assert grown.label == "train.py:30 train_step › _init_group"
    assert (grown.bytes, grown.before_blocks, grown.after_blocks) == (MIB, 1, 2)
    assert (grown.survived_bytes, grown.survived_blocks) == (MIB, 1)
    assert growth.after_bytes - growth.before_bytes == MIB
    assert growth.survived_bytes == 3 * MIB
    assert growth.is_certain


def test_the_leaking_line_comes_first() -> None:
    made = last_steps()
    ends = [end for end in made.step_ends if end.moment >= 0]
    # From the second end on: by then everything that a step makes was made within the recording.
    growth = growth_between(made, ends[1].moment, made, ends[-1].moment)
    leak = growth.rows[0]
    assert leak.label == "train.py:56 leak"
    assert leak.after_blocks - leak.before_blocks == len(ends) - 2
    assert leak.survived_bytes > 0.99 * leak.before_bytes, "but for the loss, none of it went"


def test_a_healthy_run_does_not_grow() -> None:
    made = recorded("fixed__default")
    ends = made.step_ends
    growth = growth_between(made, ends[3].moment, made, ends[-1].moment)
    assert growth.after_bytes == growth.before_bytes
    assert all(row.bytes == 0 for row in growth.rows)


def test_of_two_snapshots_address_request_and_stack_tell_what_survived() -> None:
    def taken(*blocks: dict[str, Any]) -> RecordedMemory:
        return memory([], [segment(0, list(blocks))])

    kept = block(MIB, MIB - 8, stack=LOOP_STACK)
    before = taken(kept, block(MIB, MIB, stack=LOOP_STACK), block(2 * MIB))
    after = taken(
        kept, block(MIB, MIB - 1, stack=LOOP_STACK), block(2 * MIB, 5, stack=FORWARD_STACK)
    )
    growth = growth_between(before, -1, after, -1)
    assert not growth.is_certain
    assert [(row.label, row.bytes // MIB, row.survived_blocks) for row in growth.rows] == [
        ("model.py:20 forward › forward", 2, 0),
        ("train.py:30 train_step", 0, 1),
    ]


def test_without_stacks_the_size_that_was_asked_for_tells_blocks_apart() -> None:
    before = memory([], [segment(0, [block(MIB, MIB - 8), block(3 * MIB)])])
    after = memory([], [segment(0, [block(MIB, MIB - 8), block(MIB, MIB - 8), block(2 * MIB, 5)])])
    growth = growth_between(before, -1, after, -1)
    assert growth.by_request
    assert [(row.label, row.after_blocks - row.before_blocks) for row in growth.rows] == [
        ("requests of 5 bytes", 1),
        ("requests of 1,048,568 bytes", 1),
    ]
    assert growth.survived_bytes == MIB


def test_what_went_has_a_negative_growth() -> None:
    made = two_steps()
    growth = growth_between(made, made.peak_moment, made, made.last_moment)
    assert growth.rows[0].bytes == -4 * MIB
    assert growth.rows[0].label == "model.py:20 forward › forward"
