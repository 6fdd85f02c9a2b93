"""Head-room: what others hold is taken off, and what is not known is not made up."""

from __future__ import annotations

from tests.support.made_ranks import GIB, made_rank, rows_of
from vramscope_analysis.diagnosis.head_room import allocator_limit, head_room, others_bytes
from vramscope_analysis.evidence.columns import UNKNOWN

PEAKS = {"step.peak_active_bytes": 60 * GIB, "step.peak_reserved_bytes": 70 * GIB}


def test_what_is_left_is_what_others_and_the_own_libraries_leave() -> None:
    rank = made_rank(
        50,
        columns=PEAKS,
        outside=({"name": "CUDA context", "bytes": GIB},),
        processes=(
            {"pid": 1, "bytes": 70 * GIB, "own": True},
            {"pid": 2, "bytes": 4 * GIB, "own": False},
            {"pid": 3, "bytes": None, "own": False},
        ),
    )
    room = head_room(rank)
    assert room is not None
    assert (room.limit_bytes, room.left_bytes) == (75 * GIB, 15 * GIB)
    assert (room.needed_bytes, room.reserved_bytes, room.steps) == (60 * GIB, 70 * GIB, 50)
    assert room.left_share == 15 / 75


def test_a_cap_of_the_process_counts_where_it_is_lower() -> None:
    assert allocator_limit(made_rank(1, columns=PEAKS, limit_bytes=40 * GIB)) == 40 * GIB
    assert allocator_limit(made_rank(1, columns=PEAKS, limit_bytes=90 * GIB)) == 80 * GIB


def test_the_step_that_needed_most_is_named_and_only_the_last_steps_count() -> None:
    columns = {"step.peak_active_bytes": [9 * GIB, 2 * GIB, 5 * GIB, 3 * GIB]}
    room = head_room(made_rank(4, columns=columns), window_steps=3)
    assert room is not None
    assert (room.needed_bytes, room.at_step) == (5 * GIB, 3)


def test_allocated_stands_in_where_active_is_not_known() -> None:
    columns = {"step.peak_active_bytes": UNKNOWN, "step.peak_allocated_bytes": 3 * GIB}
    room = head_room(made_rank(4, columns=columns))
    assert room is not None
    assert (room.needed_bytes, room.reserved_bytes) == (3 * GIB, 3 * GIB)


def test_without_a_limit_or_a_peak_nothing_is_known() -> None:
    assert head_room(made_rank(4, columns=PEAKS, total_bytes=None)) is None
    assert head_room(made_rank(4, columns={})) is None
    assert head_room(made_rank(4, columns={"step.peak_active_bytes": UNKNOWN})) is None


def test_in_a_container_the_driver_tells_only_the_sum_of_others_or_nothing() -> None:
    samples = rows_of(2, {"device.other_bytes": [UNKNOWN, 3 * GIB]})
    assert others_bytes(made_rank(1, columns={}, samples=samples)) == 3 * GIB
    assert others_bytes(made_rank(1, columns={})) is None


def test_what_the_driver_keeps_for_itself_is_nobodys_to_use() -> None:
    samples = rows_of(2, {"device.used_bytes": [2 * GIB, 3 * GIB], "device.free_bytes": 76 * GIB})
    assert allocator_limit(made_rank(1, columns={}, samples=samples)) == 79 * GIB
    unknown = rows_of(2, {"device.used_bytes": UNKNOWN, "device.free_bytes": 76 * GIB})
    assert allocator_limit(made_rank(1, columns={}, samples=unknown)) == 80 * GIB
