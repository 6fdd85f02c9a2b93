"""The memory of one device over a recording."""

from __future__ import annotations

import pytest

from tests.support.made_moments import MIB, block, entry, memory, recorded, segment, two_steps
from tests.support.recorded_run import load_run
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.snapshot import Snapshot


def test_live_and_reserved_at_each_moment() -> None:
    made = two_steps()
    assert [size // MIB for size in made.live_bytes] == [
        *(0, 0, 2, 6, 8, 8, 4, 5, 5, 3),
        *(7, 9, 9, 5, 6, 6, 4),
    ]
    assert set(made.reserved_bytes[1:].tolist()) == {20 * MIB}
    assert made.reserved_bytes[0] == 0
    assert made.peak_moment == 10


def test_reserved_is_the_allocators_own_at_each_step() -> None:
    run = load_run("unet__gc60")
    made = RecordedMemory.of(run.snapshot)
    for row in run.rows:
        assert made.reserved_bytes[row.event] == row.counters["reserved_bytes.all.current"]


def test_a_device_is_chosen_or_named() -> None:
    segments = [segment(0, [block(MIB, 5)]), segment(4 * MIB, [block(MIB, 5)], device=3)]
    plain = {"segments": segments, "device_traces": [[], []], "allocator_settings": {}}
    snapshot = Snapshot.from_plain(plain)
    assert RecordedMemory.of(snapshot).device == 0
    assert RecordedMemory.of(snapshot, 3).live_bytes.tolist() == [MIB]
    with pytest.raises(ValueError, match=r"a device of the snapshot \(0, 3\), got 1"):
        RecordedMemory.of(snapshot, 1)
    empty = Snapshot.from_plain({"segments": [], "device_traces": [], "allocator_settings": {}})
    with pytest.raises(ValueError, match="got an empty one"):
        RecordedMemory.of(empty)


def test_moments_by_time() -> None:
    made = two_steps()
    assert made.nearest_moment(0) == -1
    assert made.nearest_moment(110) == 3
    assert made.clamped(99) == made.last_moment
    assert made.clamped(-5) == -1


def test_refused_requests() -> None:
    made = memory([entry("alloc", 0, 512), entry("oom", 100, 5 * MIB)])
    assert made.out_of_memory == [(1, 5 * MIB)]
    assert recorded("oom__default").out_of_memory[0][1] > 100 * MIB


def test_times_never_fall() -> None:
    made = memory([entry("alloc", 0, 512, time_us=9), entry("alloc", 512, 512, time_us=5)])
    assert made.time_us.tolist() == [9, 9]
