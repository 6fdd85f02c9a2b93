"""When blocks were live: within the trace, before it, and beyond its end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

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
    snapshot,
)
from tests.support.recorded_run import load_run, names
from vramscope_analysis.moments.lifetimes import BEFORE, lifetimes_of
from vramscope_analysis.snapshot import Snapshot


def rows(made: Snapshot) -> list[tuple[int, int, int, int]]:
    lifetimes = lifetimes_of(made, 0)
    columns = zip(
        (lifetimes.address.astype(np.int64) - BASE).tolist(),
        lifetimes.born.tolist(),
        lifetimes.freed.tolist(),
        lifetimes.completed.tolist(),
        strict=True,
    )
    return sorted(columns)


def test_an_address_is_used_again() -> None:
    made = snapshot(
        [
            entry("alloc", 0, 512),
            entry("free_requested", 0, 512),
            entry("free_completed", 0, 512),
            entry("alloc", 0, 512),
        ]
    )
    assert rows(made) == [(0, 0, 1, 2), (0, 3, 4, 4)]


def test_a_free_without_an_alloc_is_of_a_block_from_before() -> None:
    made = snapshot(
        [
            entry("free_completed", 0, 700),
            entry("alloc", 0, 100),
            entry("free_requested", 1024, 5),
            entry("free_completed", 1024, 5),
        ]
    )
    assert rows(made) == [(0, BEFORE, BEFORE, 0), (0, 1, 4, 4), (1024, BEFORE, 2, 3)]
    lifetimes = lifetimes_of(made, 0)
    assert lifetimes.size[lifetimes.born == BEFORE].tolist() == [1024, 512]


def test_what_only_the_segments_know_was_there_before() -> None:
    segments = [segment(0, [block(MIB, MIB - 8, stack=FORWARD_STACK), block(MIB)])]
    lifetimes = lifetimes_of(snapshot([entry("alloc", 4 * MIB, 8)], segments), 0)
    before = lifetimes.live_at(BEFORE)
    assert lifetimes.size[before].tolist() == [MIB]
    assert lifetimes.requested[before].tolist() == [MIB - 8]
    assert lifetimes.stack[before].tolist() >= [0]


def test_what_came_and_went_while_the_snapshot_was_taken() -> None:
    trace = [
        entry("alloc", 0, MIB),
        entry("free_requested", 0, MIB),
        entry("free_completed", 0, MIB),
        entry("alloc", 2 * MIB, MIB),
    ]
    # Allocated again and freed, both after the last entry.
    segments = [segment(0, [block(MIB, MIB), block(MIB), block(MIB)])]
    lifetimes = lifetimes_of(snapshot(trace, segments), 0)
    assert (lifetimes.unseen_allocs, lifetimes.unseen_frees) == (1, 1)
    assert lifetimes.live_at(3).tolist() == [1]


def test_a_block_that_waits_for_a_stream_is_live_until_it_is_done() -> None:
    trace = [entry("alloc", 0, 512), entry("free_requested", 0, 512), entry("alloc", 512, 512)]
    segments = [segment(0, [block(512, 512, state="active_pending_free"), block(512, 512)])]
    made = memory(trace, segments)
    assert made.lifetimes.freed.tolist() == [1, 3]
    assert made.live_bytes.tolist() == [0, 512, 512, 1024]


def test_without_a_history_there_is_the_end() -> None:
    made = memory([], [segment(0, [block(512, 500, stack=FORWARD_STACK), block(512)])])
    assert made.entries == 0
    assert made.live_bytes.tolist() == [512]
    assert made.peak_moment == BEFORE


def test_frees_recorded_as_requests_only() -> None:
    made = snapshot([entry("alloc", 0, 512), entry("free_requested", 0, 512)])
    assert rows(made) == [(0, 0, 1, 1)]


# Settings that were changed while they recorded, and pools that never split: no snapshot tells.
UNTOLD = ("settings__", "pool_options__")


@pytest.mark.parametrize("name", names())
def test_live_bytes_at_each_step_are_the_allocators_own(name: str) -> None:
    run = load_run(name)
    lifetimes = lifetimes_of(run.snapshot, 0)

    def counted(until: NDArray[np.int64], amount: NDArray[np.int64]) -> NDArray[np.int64]:
        changes = np.zeros(lifetimes.entries + 2, np.int64)
        np.add.at(changes, lifetimes.born + 1, amount)
        np.add.at(changes, until + 1, -amount)
        return np.cumsum(changes)

    requested = counted(lifetimes.completed, lifetimes.requested)
    active = counted(lifetimes.completed, lifetimes.size)
    allocated = counted(lifetimes.freed, lifetimes.size)
    for row in run.rows:
        assert requested[row.event] == row.counters["requested_bytes.all.current"]
        if not name.startswith(UNTOLD):
            assert active[row.event] == row.counters["active_bytes.all.current"]
            assert allocated[row.event] == row.counters["allocated_bytes.all.current"]
    end = run.final_stats
    assert allocated[lifetimes.entries] == end["allocated_bytes.all.current"]
    assert allocated.max() == end["allocated_bytes.all.peak"]


def test_a_lost_begin_costs_only_rests_that_nobody_recorded() -> None:
    whole, tail = recorded("leak__default"), last_steps()
    lost = whole.entries - tail.entries
    is_from_before = tail.lifetimes.born < 0
    assert (tail.live_bytes <= whole.live_bytes[lost:]).all()
    gone = int((is_from_before & (tail.lifetimes.completed < tail.entries)).sum())
    assert (whole.live_bytes[lost:] - tail.live_bytes).max() <= gone * MIB
    # What was asked for is exact: it stands in the entries.
    same = whole.lifetimes.live_at(lost + 4000)
    assert tail.lifetimes.requested[tail.lifetimes.live_at(4000)].sum() == (
        whole.lifetimes.requested[same].sum()
    )
