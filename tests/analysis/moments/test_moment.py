"""Who held how much at one moment."""

from __future__ import annotations

from tests.support.made_moments import (
    BASE,
    FORWARD_STACK,
    MIB,
    block,
    entry,
    last_steps,
    memory,
    recorded,
    segment,
    two_steps,
)
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.moment import moment_of


def test_tables_of_a_moment() -> None:
    made = two_steps()
    moment = moment_of(made, made.peak_moment)
    assert moment.live_bytes == 9 * MIB == sum(held.bytes for held in moment.by_stack)
    assert (moment.blocks, moment.reserved_bytes, moment.time_us) == (4, 20 * MIB, 210)
    assert [(held.group.label, held.bytes // MIB, held.blocks) for held in moment.by_stack] == [
        ("model.py:20 forward › forward", 4, 1),
        ("train.py:30 train_step", 2, 1),
        ("gradients, no Python stack", 2, 1),
        ("train.py:30 train_step › _init_group", 1, 1),
    ]
    assert moment.by_line[0].bytes == 4 * MIB
    assert [(held.group.label, held.blocks) for held in moment.by_size] == [
        ("up to 1 MiB", 1),
        ("1 to 10 MiB", 3),
    ]
    assert {held.group.category: held.bytes for held in moment.by_category} == {
        Category.GRADIENTS: 2 * MIB,
        Category.OPTIMIZER: MIB,
        Category.ACTIVATIONS: 4 * MIB,
        Category.OTHER: 2 * MIB,
    }


def test_the_largest_blocks_with_their_age() -> None:
    made = two_steps()
    first, *_, last = moment_of(made, made.peak_moment).largest
    assert (first.size_bytes, first.address, first.age_us) == (4 * MIB, BASE + 2 * MIB, 10)
    assert (last.size_bytes, last.age_us) == (MIB, 70)


def test_before_the_first_entry_and_after_the_last() -> None:
    made = two_steps()
    before = moment_of(made, -1)
    assert (before.live_bytes, before.time_us, before.by_stack) == (0, None, [])
    assert moment_of(made, 999).moment == made.last_moment


def test_what_waits_for_a_stream_and_what_was_there_before() -> None:
    trace = [
        entry("alloc", 0, 512, stack=FORWARD_STACK),
        entry("free_requested", 0, 512),
        entry("alloc", 512, 100),
    ]
    waits = segment(0, [block(512, 512, state="active_pending_free"), block(512, 100)])
    made = memory(trace, [waits, segment(4 * MIB, [block(MIB, MIB - 1)])])
    moment = moment_of(made, 1)
    assert moment.pending_bytes == 512
    assert moment.before_bytes == MIB
    assert moment.requested_bytes == MIB - 1 + 512
    assert [one.is_pending for one in moment.largest] == [False, True]
    assert moment.largest[0].age_us is None


def test_a_recorded_peak_is_the_forward_pass() -> None:
    made = recorded("fixed__default")
    by_line = moment_of(made, made.peak_moment).by_line
    known = [held.group for held in by_line if held.group.file]
    assert known[0].label == "train.py:21 forward"
    assert known[0].category == Category.ACTIVATIONS


def test_of_a_wrapped_ring_the_rest_is_said_to_be_older() -> None:
    made = last_steps()
    moment = moment_of(made, made.peak_moment)
    labels = {held.group.label: held.bytes for held in moment.by_stack}
    assert 0 < labels["allocated before the recording"] <= moment.before_bytes
    assert "train.py:56 leak" in labels
