"""What was free at a moment is what the allocator itself had there."""

from __future__ import annotations

import pytest

from tests.support.allocator_traces import load_snapshot, load_trace
from vramscope_analysis.moments.free_pieces import free_pieces, ranges_at
from vramscope_analysis.moments.recorded_memory import RecordedMemory


@pytest.mark.parametrize("name", ["oom__default", "varlen__expandable"])
def test_at_step_ends_free_and_live_make_up_what_the_counters_say(name: str) -> None:
    memory = RecordedMemory.of(load_snapshot(name))
    counted = load_trace(name).steps
    for end in memory.step_ends[::7]:
        held = sum(r.end - r.start for r in ranges_at(memory, end.moment))
        free = sum(row["bytes"] for row in free_pieces(memory, end.moment))
        assert held == memory.reserved_bytes[end.moment + 1]
        assert free + memory.live_bytes[end.moment + 1] == held
    assert len(counted) >= len(memory.step_ends)


def test_after_a_refusal_nothing_is_left_that_could_be_given_back() -> None:
    memory = RecordedMemory.of(load_snapshot("oom__default"))
    (entry, request) = memory.out_of_memory[0]
    rows = free_pieces(memory, entry)
    large = next(row for row in rows if row["pool"] == "large")
    assert [row["returnable_bytes"] for row in rows] == [0, 0]
    # PyTorch said: 413.97 MiB is reserved by PyTorch but unallocated.
    assert round(sum(row["bytes"] for row in rows) / (1 << 20), 2) == 413.97
    assert large["largest_bytes"] < request < large["bytes"]


def test_before_the_first_entry_there_was_nothing() -> None:
    memory = RecordedMemory.of(load_snapshot("oom__default"))
    assert free_pieces(memory, -1) == []
