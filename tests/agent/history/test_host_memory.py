"""The ring is bounded before it is filled, and what it really took is watched."""

from __future__ import annotations

import mmap

import pytest

from vramscope.history.host_memory import (
    ENTRY_BYTES,
    HostMemoryBudget,
    entries_within,
    resident_bytes,
)
from vramscope.history.pytorch_history import HistoryMode

MIB = 1 << 20


@pytest.mark.parametrize(
    ("mode", "stacks", "each_bytes"),
    [("alloc", False, 900), ("alloc", True, 1600), ("all", False, 900), ("all", True, 2200)],
)
def test_entries_are_counted_with_their_stacks(
    mode: HistoryMode, stacks: bool, each_bytes: int
) -> None:
    assert entries_within(256 * MIB, mode, stacks=stacks) == 128 * MIB // each_bytes


def test_live_blocks_alone_need_no_ring() -> None:
    assert entries_within(256 * MIB, "state", stacks=True) == 1


def test_a_snapshots_own_dicts_cost_what_is_counted() -> None:
    # What an entry takes as a dict, with its numbers: the ring of PyTorch comes on top.
    import sys

    entry = {
        "action": "alloc",
        "addr": 1 << 47,
        "size": 1 << 33,
        "stream": 0,
        "time_us": 1_800_000_000_000_000,
        "compile_context": "N/A",
        "user_metadata": "",
        "pool_id": (0, 0),
        "frames": [],
    }
    own = sys.getsizeof(entry) + 3 * sys.getsizeof(1 << 47) + sys.getsizeof([])
    assert own < ENTRY_BYTES - 2 * 136


def test_growth_beyond_the_budget_is_told_in_words() -> None:
    sizes = iter([100, 100 + 5 * MIB, 100 + 5 * MIB + 1])
    budget = HostMemoryBudget(5 * MIB, lambda: next(sizes))
    assert budget.excess() is None
    reason = budget.excess()
    assert reason is not None
    assert reason.startswith("the process grew by 5")


def test_where_the_kernel_does_not_say_nothing_is_made_up() -> None:
    budget = HostMemoryBudget(1, lambda: None)
    assert budget.grown_bytes() is None
    assert budget.excess() is None


def test_resident_memory_grows_with_what_is_touched() -> None:
    before = resident_bytes()
    # A mapping of its own: memory that the process freed before would be resident already.
    held = mmap.mmap(-1, 32 * MIB)
    for page in range(0, 32 * MIB, mmap.PAGESIZE):
        held[page] = 1
    after = resident_bytes()
    held.close()
    assert before is not None
    assert after is not None
    assert after - before > 16 * MIB
