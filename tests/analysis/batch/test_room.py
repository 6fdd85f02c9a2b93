"""What the peak may take of a device."""

from __future__ import annotations

from tests.support.made_batches import LIMIT, batch_rank
from tests.support.made_ranks import GIB, MIB, rows_of
from vramscope_analysis.batch.room import room


def test_the_head_room_and_what_segments_waste_are_left() -> None:
    found = room(batch_rank([8] * 4, columns={"segment.all.current": 50}), 0.1)
    assert found is not None
    assert (found.limit_bytes, found.allowed_bytes) == (LIMIT, int(0.9 * LIMIT))
    assert found.waste_bytes == int(0.08 * found.allowed_bytes) + 50 * MIB + 10 * MIB
    assert found.at_worst_bytes < found.for_tensors_bytes < found.allowed_bytes


def test_a_cap_of_the_process_and_what_others_hold_count() -> None:
    capped = room(batch_rank([8] * 4, limit_bytes=10 * GIB))
    assert capped is not None
    assert capped.limit_bytes == 10 * GIB
    samples = rows_of(1, {"device.other_bytes": 15 * GIB})
    shared = room(batch_rank([8] * 4, samples=samples))
    assert shared is not None
    assert shared.limit_bytes == LIMIT - 15 * GIB


def test_a_cache_full_of_small_segments_does_not_take_all_the_room() -> None:
    found = room(batch_rank([8] * 4, columns={"segment.all.current": 100_000}))
    assert found is not None
    assert found.waste_bytes <= 0.15 * found.allowed_bytes


def test_without_a_device_there_is_none() -> None:
    assert room(batch_rank([8] * 4, total_bytes=None)) is None
