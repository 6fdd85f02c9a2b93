"""What stays itself from one look to the next, and how long it has been there."""

from __future__ import annotations

from typing import Any

from tests.support.made_segments import MIB, many_segments, segment
from tests.support.recorded_map import recorded_segments
from vramscope.commands.cache_plan import plan_empty_cache
from vramscope.memory_map.look import UNSEEN, Look, Looks
from vramscope_protocol.map_columns import EXPANDABLE, LARGE, PRIVATE

HERE = 0x7F0000000000
PAGES = {"is_expandable": True, "page_bytes": 2 * MIB}


def take(looks: Looks, *segments: dict[str, Any], step: int = 1, ms: int = 0) -> Look:
    return looks.take(list(segments), time_ns=ms * 1_000_000, step=step, is_step_end=True)


def test_nobody_saw_come_what_is_there_at_the_first_look() -> None:
    looks = Looks()
    take(looks, segment(HERE, "a2 f1"), step=5, ms=100)
    look = take(looks, segment(HERE, "a2 a1"), step=6, ms=350)
    assert look.segments[HERE].firsts == [UNSEEN, (6, 250)]
    assert look.since_ns == 100_000_000


def test_a_block_stays_itself_while_its_neighbours_change() -> None:
    looks = Looks()
    take(looks)
    take(looks, segment(HERE, "a1 a2 f1"), step=2, ms=10)
    look = take(looks, segment(HERE, "f1 a2 a1"), step=9, ms=90)
    assert look.segments[HERE].firsts[1:] == [(2, 10), (9, 90)]
    # Freed for another stream, it is still the same block.
    look = take(looks, segment(HERE, "f1 p2 a1"), step=10, ms=100)
    assert look.segments[HERE].firsts[1:] == [(2, 10), (9, 90)]


def test_another_size_at_the_same_address_is_another_block() -> None:
    looks = Looks()
    take(looks)
    take(looks, segment(HERE, "a2 f2"), step=2)
    look = take(looks, segment(HERE, "a1 f3"), step=3, ms=5)
    assert look.segments[HERE].firsts[0] == (3, 5)
    requested = segment(HERE, "a1 f3")
    requested["blocks"][0]["requested_size"] -= 512
    assert take(looks, requested, step=4, ms=6).segments[HERE].firsts[0] == (4, 6)


def test_a_segment_without_a_change_is_the_same_object() -> None:
    looks = Looks()
    first = take(looks, segment(HERE, "a1 f1"), segment(HERE + 8 * MIB, "a1"))
    second = take(looks, segment(HERE, "a1 f1"), segment(HERE + 8 * MIB, "f1"), step=2)
    assert second.segments[HERE] is first.segments[HERE]
    assert second.segments[HERE + 8 * MIB] is not first.segments[HERE + 8 * MIB]
    # The same blocks in a segment of another stream are another segment.
    third = take(looks, segment(HERE, "a1 f1", stream=7), step=3)
    assert third.segments[HERE].stream == 7
    assert HERE + 8 * MIB not in third.segments


def test_ranges_of_expandable_segments_join_and_part_without_making_blocks_younger() -> None:
    looks = Looks()
    take(looks)
    take(looks, segment(HERE, "f2 f2 a4 a2", **PAGES), step=2, ms=10)
    # The two pages in front went back: the range begins at another address now.
    look = take(looks, segment(HERE + 4 * MIB, "a4 a2 f2", **PAGES), step=3, ms=20)
    assert look.segments[HERE + 4 * MIB].firsts == [(2, 10), (2, 10), (3, 20)]
    joined = take(looks, segment(HERE, "f4 a4 a2 f2", **PAGES), step=4, ms=30)
    assert joined.segments[HERE].firsts[1:3] == [(2, 10), (2, 10)]


def test_flags_plan_and_largest_free_block() -> None:
    looks = Looks()
    private = segment(HERE, "a1 f9", segment_pool_id=(0, 3))
    small = segment(HERE + 64 * MIB, "a1 f1", segment_type="small", **PAGES)
    look = take(looks, private, small, segment(HERE + 128 * MIB, "f2 p1 f3"))
    states = [look.segments[each] for each in sorted(look.segments)]
    assert [state.flags for state in states] == [LARGE | PRIVATE, EXPANDABLE, LARGE]
    assert [state.pool_id for state in states] == [(0, 3), (0, 0), (0, 0)]
    # What a private pool has free serves nobody else.
    assert [state.largest_free_bytes for state in states] == [0, MIB, 3 * MIB]
    assert [state.plan.private_pool_bytes for state in states] == [9 * MIB, 0, 0]
    assert [state.plan.returnable_bytes for state in states] == [0, 0, 6 * MIB]


def test_plans_of_single_segments_add_up_to_the_plan_of_a_recorded_job() -> None:
    for name in ("pools__expandable", "streams__default", "cuda_graphs__combined", "oom__default"):
        segments = recorded_segments(name)
        plans = [state.plan for state in take(Looks(), *segments).segments.values()]
        whole = plan_empty_cache(segments)
        assert sum(plan.returnable_bytes for plan in plans) == whole.returnable_bytes
        assert sum(plan.stranded_bytes for plan in plans) == whole.stranded_bytes
        assert sum(plan.private_pool_bytes for plan in plans) == whole.private_pool_bytes


def test_stacks_are_kept_where_blocks_have_them() -> None:
    frames = [{"filename": "train.py", "line": 3, "name": "step"}]
    traced = segment(HERE, "a1 f1")
    for block in traced["blocks"]:
        block["frames"] = frames
    looks = Looks()
    assert take(looks, traced).segments[HERE].stacks == [frames, None]
    assert take(looks, segment(HERE, "a1 f2")).segments[HERE].stacks is None


def test_blocks_are_counted() -> None:
    assert take(Looks(), *many_segments(3, 4)).block_count == 12
