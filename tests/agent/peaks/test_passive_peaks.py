"""Peaks without resets: told where the counters have risen, unknown elsewhere, never wrong."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from vramscope.peaks.passive_peaks import PassivePeaks
from vramscope.peaks.peak_layout import UNKNOWN_PEAKS
from vramscope_analysis.allocator import CachingAllocator
from vramscope_protocol.columns import UNKNOWN


class Rig:
    """A device whose counters are read, and a second allocator that knows the truth."""

    def __init__(self) -> None:
        self.model, self.truth = (CachingAllocator(1 << 30, version=(2, 11)) for _ in range(2))
        self.is_there = True
        self.c_module: Any = SimpleNamespace(
            _cuda_memoryStats=lambda index: self.model.memory_stats(),
            _cuda_resetPeakMemoryStats=lambda index: self._reset(index),
            _cuda_resetAccumulatedMemoryStats=lambda index: self.model.reset_accumulated(),
        )
        self.original = dict(vars(self.c_module))
        self.peaks = PassivePeaks(
            lambda: self.model.memory_stats() if self.is_there else None, lambda: 0
        )
        self.peaks.watch(self.c_module)

    def peak(self, size_bytes: int) -> None:
        for allocator in (self.model, self.truth):
            allocator.free(allocator.malloc(size_bytes))

    def allocated_peak(self) -> int:
        return self.peaks.take().peaks[0]

    def _reset(self, index: int) -> None:
        if index == 0:
            self.model.reset_peaks()


def test_a_peak_is_known_where_it_rises_above_all_before() -> None:
    rig = Rig()
    assert rig.allocated_peak() == UNKNOWN
    rig.peak(1 << 20)
    assert rig.allocated_peak() == 1 << 20
    rig.peak(1 << 19)
    assert rig.allocated_peak() == UNKNOWN
    rig.peak(1 << 21)
    assert rig.allocated_peak() == 1 << 21


def test_a_reset_of_the_job_hides_nothing_and_makes_nothing_up() -> None:
    rig = Rig()
    rig.peaks.take()
    rig.peak(1 << 22)
    rig.c_module._cuda_resetPeakMemoryStats(0)
    rig.peak(1 << 20)
    assert rig.allocated_peak() == 1 << 22
    rig.c_module._cuda_resetPeakMemoryStats(1)  # another device
    rig.peak(1 << 19)
    assert rig.allocated_peak() == UNKNOWN


def test_the_counters_of_the_job_are_only_read() -> None:
    rig = Rig()
    rig.peak(1 << 22)
    before = rig.model.memory_stats()
    interval = rig.peaks.take()
    assert interval.stats == before == rig.model.memory_stats()


def test_totals_go_on_when_the_job_sets_them_to_zero() -> None:
    rig = Rig()
    rig.peak(1 << 20)
    rig.c_module._cuda_resetAccumulatedMemoryStats(0)
    rig.peak(1 << 21)
    assert rig.peaks.take().allocated_total_bytes == (1 << 20) + (1 << 21)


def test_without_counters_everything_is_unknown_also_what_comes_first_after() -> None:
    rig = Rig()
    rig.peaks.take()
    rig.is_there = False
    rig.peak(1 << 25)
    interval = rig.peaks.take()
    assert (interval.stats, interval.peaks) == (None, UNKNOWN_PEAKS)
    assert interval.allocated_total_bytes == UNKNOWN
    rig.is_there = True
    assert rig.allocated_peak() == UNKNOWN


def test_what_is_told_is_the_truth_over_random_work() -> None:
    rng = random.Random(3)
    rig = Rig()
    rig.peaks.take()
    known = 0
    for _ in range(600):
        for _ in range(rng.randrange(3)):
            rig.peak(1 << rng.randrange(9, 26))
            if rng.random() < 0.3:
                rig.c_module._cuda_resetPeakMemoryStats(0)
        told = rig.allocated_peak()
        true = rig.truth.memory_stats()["allocated_bytes"]["all"]["peak"]
        rig.truth.reset_peaks()
        assert told in (true, UNKNOWN)
        known += told == true
    assert 50 < known < 600


def test_it_leaves_everything_as_it_was() -> None:
    rig = Rig()
    rig.peaks.watch(rig.c_module)
    rig.peaks.remove()
    assert vars(rig.c_module) == rig.original


def test_in_a_forked_child_it_reads_nothing() -> None:
    rig = Rig()
    rig.peaks.forget_after_fork()
    rig.is_there = False
    rig.c_module._cuda_resetPeakMemoryStats(0)
    rig.is_there = True
    rig.peak(1 << 20)
    rig.peaks.take()
    rig.peak(1 << 21)
    assert rig.allocated_peak() == 1 << 21
