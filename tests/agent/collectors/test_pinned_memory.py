"""Pinned memory under the names of each release, never asked before CUDA is up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.collectors.pinned_memory import PinnedMemory, PinnedMemoryReader, pinned_memory


def stat(current: int) -> dict[str, int]:
    return {"current": current, "peak": current + 1, "allocated": 0, "freed": 0}


UP_TO_2_10 = {
    "num_host_alloc": 3,
    "allocation": stat(2),
    "segment": stat(3),
    "allocated_bytes": stat(1 << 20),
    "reserved_bytes": stat(4 << 20),
    "host_alloc_time": {"total": 1, "max": 1, "min": 1, "count": 1, "avg": 1},
}
FROM_2_11 = {
    "num_host_alloc": 3,
    "allocations": stat(3),
    "allocated_bytes": stat(4 << 20),
    "active_requests": stat(2),
    "active_bytes": stat(1 << 20),
}


@pytest.mark.parametrize("stats", [UP_TO_2_10, FROM_2_11])
def test_used_and_held_by_the_names_of_each_release(stats: dict[str, Any]) -> None:
    assert pinned_memory(stats) == PinnedMemory(1 << 20, 4 << 20)


@pytest.mark.parametrize("stats", [{}, {"active_bytes": 3}, {"allocated_bytes": {"peak": 3}}])
def test_other_names_are_unknown(stats: dict[str, Any]) -> None:
    assert pinned_memory(stats) == PinnedMemory()


class Asked:
    """``torch._C`` with the question, counted."""

    def __init__(self, took_ns: int = 0) -> None:
        self.times = 0
        self.now_ns = 0
        self.took_ns = took_ns

    def _cuda_hostMemoryStats(self) -> dict[str, Any]:
        self.times += 1
        self.now_ns += self.took_ns
        return FROM_2_11


def test_nothing_is_asked_before_the_job_has_set_cuda_up() -> None:
    c_module = Asked()
    is_up = False
    reader = PinnedMemoryReader(lambda: c_module if is_up else None)
    assert reader.read() == PinnedMemory()
    assert c_module.times == 0
    is_up = True
    assert reader.read() == PinnedMemory(1 << 20, 4 << 20)


def test_an_older_torch_has_no_such_counters() -> None:
    asked: list[int] = []

    def cuda() -> Any:
        asked.append(1)
        return SimpleNamespace()

    reader = PinnedMemoryReader(cuda)
    assert reader.read() == reader.read() == PinnedMemory()
    assert len(asked) == 1


def test_an_allocator_that_refuses_is_not_asked_again() -> None:
    calls: list[int] = []

    def refuse() -> dict[str, Any]:
        calls.append(1)
        raise RuntimeError("no host allocator")

    reader = PinnedMemoryReader(lambda: SimpleNamespace(_cuda_hostMemoryStats=refuse))
    assert reader.read() == reader.read() == PinnedMemory()
    assert len(calls) == 1


def test_it_is_asked_at_every_fifth_reading() -> None:
    c_module = Asked()
    reader = PinnedMemoryReader(lambda: c_module, lambda: c_module.now_ns)
    assert {reader.read() for _ in range(11)} == {PinnedMemory(1 << 20, 4 << 20)}
    assert c_module.times == 3


def test_after_a_slow_answer_the_last_one_is_repeated_for_a_while() -> None:
    c_module = Asked(took_ns=6_000_000)
    reader = PinnedMemoryReader(lambda: c_module, lambda: c_module.now_ns)
    answers = {reader.read() for _ in range(61)}
    assert answers == {PinnedMemory(1 << 20, 4 << 20)}
    assert c_module.times == 1
    reader.read()
    assert c_module.times == 2
