"""The job's counters are those of an untouched twin, and peaks of intervals are the true ones."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_layout import PEAK_COUNTERS, UNKNOWN_PEAKS
from vramscope.peaks.user_peaks import UserPeaks
from vramscope_analysis.allocator import Block, CachingAllocator
from vramscope_protocol.columns import UNKNOWN


class Twins:
    """Three allocators that get the same calls: watched, untouched, and reset at each interval."""

    def __init__(self, version: tuple[int, int], seed: int = 0) -> None:
        self.watched, self.untouched, self.interval = (
            CachingAllocator(1 << 30, version=version) for _ in range(3)
        )
        self.peaks = UserPeaks(
            self.watched.memory_stats, self.watched.reset_peaks, self.watched.reset_accumulated
        )
        self._random = random.Random(seed)
        self._blocks: list[tuple[Block, Block, Block]] = []

    def allocate(self, size_bytes: int) -> None:
        allocators = (self.watched, self.untouched, self.interval)
        one, two, three = (each.malloc(size_bytes) for each in allocators)
        self._blocks.append((one, two, three))

    def free(self, position: int = -1) -> None:
        for allocator, block in zip(
            (self.watched, self.untouched, self.interval), self._blocks.pop(position), strict=True
        ):
            allocator.free(block)

    def work(self) -> None:
        for _ in range(self._random.randrange(6)):
            if self._blocks and self._random.random() < 0.55:
                self.free(self._random.randrange(len(self._blocks)))
            else:
                self.allocate(1 << self._random.randrange(8, 25))
        if self._random.random() < 0.05:
            for allocator in (self.watched, self.untouched, self.interval):
                allocator.empty_cache()

    def reset(self) -> None:
        """As the job would: its counters, and the twin's."""
        self.peaks.reset()
        self.untouched.reset_peaks()

    def reset_accumulated(self) -> None:
        self.peaks.reset_accumulated()
        self.untouched.reset_accumulated()

    def true_interval(self) -> tuple[int, ...]:
        stats = self.interval.memory_stats()
        self.interval.reset_peaks()
        return tuple(stats[name]["all"]["peak"] for name in PEAK_COUNTERS)


def test_before_and_after_an_interval_the_job_sees_the_same() -> None:
    twins = Twins((2, 11))
    twins.allocate(1 << 24)
    twins.free()
    before = twins.peaks.view()
    twins.peaks.take()
    assert twins.watched.memory_stats() != before
    assert twins.peaks.view() == before == twins.untouched.memory_stats()


@pytest.mark.parametrize("version", [(2, 4), (2, 11), (2, 13)])
@pytest.mark.parametrize("seed", range(4))
def test_random_work_and_resets_look_the_same_to_the_job(
    version: tuple[int, int], seed: int
) -> None:
    twins = Twins(version, seed)
    rng = random.Random(1000 + seed)
    exact = 0
    twins.peaks.take()
    twins.true_interval()
    for _ in range(500):
        for _ in range(rng.randrange(1, 4)):
            twins.work()
            if rng.random() < 0.15:
                twins.reset()
            if rng.random() < 0.1:
                twins.reset_accumulated()
            assert twins.peaks.view() == twins.untouched.memory_stats()
        may_reset = rng.random() < 0.8
        interval = twins.peaks.take(reset=may_reset)
        assert interval is not None
        assert interval.stats == twins.untouched.memory_stats() == twins.peaks.view()
        for told, true in zip(interval.peaks, twins.true_interval(), strict=True):
            assert told in (true, UNKNOWN)
            exact += told == true
        allocated = twins.interval.counters.all.allocated_bytes.allocated
        assert interval.allocated_total_bytes == allocated
    assert exact > 1000


def test_with_every_interval_reset_every_peak_is_exact() -> None:
    twins = Twins((2, 11), 9)
    twins.peaks.take()
    twins.true_interval()
    for _ in range(500):
        twins.work()
        interval = twins.peaks.take()
        assert interval is not None
        assert interval.peaks == twins.true_interval()


def test_a_pool_that_is_gone_is_gone_for_the_job_too() -> None:
    twins = Twins((2, 13))
    stats = twins.watched.memory_stats()
    stat = {"current": 0, "peak": 9, "allocated": 9, "freed": 9}
    with_pool = stats | {"reserved_bytes_by_private_pools": {(0, 1): {"all": stat}}}
    answers = [with_pool, stats]
    peaks = UserPeaks(lambda: answers.pop(0), lambda: None)
    peaks.take()
    assert peaks.view()["reserved_bytes_by_private_pools"] == {}


def test_what_is_kept_is_needed_until_the_job_resets_or_goes_above_it() -> None:
    twins = Twins((2, 11))
    assert not twins.peaks.is_higher()
    twins.allocate(1 << 20)
    twins.free()
    twins.peaks.take()
    assert twins.peaks.is_higher()
    twins.reset()
    assert not twins.peaks.is_higher()
    twins.allocate(1 << 20)
    twins.free()
    twins.peaks.take()
    for _ in range(3):  # further in every counter, the small pool's included
        twins.allocate(1 << 22)
        twins.allocate(1 << 10)
        twins.allocate(1 << 19)
    assert twins.peaks.view() == twins.untouched.memory_stats()


# ------------------------------------------------------------------------------ interruptions


class Interrupted:
    """Counters whose reads and resets let something else happen in the middle."""

    def __init__(self, twins: Twins) -> None:
        self.twins = twins
        self.before_read: Any = None
        self.after_read: Any = None
        self.before_reset: Any = None
        self.after_reset: Any = None
        self.peaks = twins.peaks = UserPeaks(self.read, self.reset)

    def read(self) -> Any:
        self._let("before_read")
        stats = self.twins.watched.memory_stats()
        self._let("after_read")
        return stats

    def reset(self) -> None:
        self._let("before_reset")
        self.twins.watched.reset_peaks()
        self._let("after_reset")

    def _let(self, moment: str) -> None:
        happens = getattr(self, moment)
        setattr(self, moment, None)  # once, and not inside itself
        if happens is not None:
            happens()


MOMENTS = ("before_read", "after_read", "before_reset", "after_reset")


def prepared() -> tuple[Twins, Interrupted]:
    """A job whose kept peak, real peak and current value are three different numbers."""
    twins = Twins((2, 11))
    counters = Interrupted(twins)
    twins.allocate(1 << 26)
    twins.free()
    counters.peaks.take()
    twins.allocate(1 << 23)
    twins.free()
    twins.allocate(1 << 22)
    return twins, counters


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_reader_in_the_middle_of_an_interval_end_sees_what_the_job_sees(moment: str) -> None:
    twins, counters = prepared()
    seen: list[Any] = []
    setattr(counters, moment, lambda: seen.append(counters.peaks.view()))
    counters.peaks.take()
    assert seen == [twins.untouched.memory_stats()]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_reader_in_the_middle_of_a_reset_sees_before_or_after(moment: str) -> None:
    twins, counters = prepared()
    before = twins.untouched.memory_stats()
    seen: list[Any] = []
    setattr(counters, moment, lambda: seen.append(counters.peaks.view()))
    twins.reset()
    assert seen[0] in (before, twins.untouched.memory_stats())


@pytest.mark.parametrize("moment", ["before_read", "after_read"])
def test_a_reset_in_the_middle_of_a_read_gives_before_or_after(moment: str) -> None:
    twins, counters = prepared()
    before = twins.untouched.memory_stats()
    setattr(counters, moment, twins.reset)
    assert counters.peaks.view() in (before, twins.untouched.memory_stats())


@pytest.mark.parametrize("moment", ["before_read", "after_read"])
def test_an_interval_end_in_the_middle_of_a_read_hides_nothing(moment: str) -> None:
    twins, counters = prepared()
    setattr(counters, moment, counters.peaks.take)
    assert counters.peaks.view() == twins.untouched.memory_stats()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_finalizer_that_resets_in_the_middle_of_an_interval_end_is_not_undone(
    moment: str,
) -> None:
    twins, counters = prepared()
    setattr(counters, moment, twins.reset)
    counters.peaks.take()
    assert counters.peaks.view() == twins.untouched.memory_stats()


def test_an_interval_does_not_wait_for_another_thread_that_resets() -> None:
    twins, counters = prepared()
    before = twins.untouched.memory_stats()
    taken: list[Any] = []

    def take() -> None:
        taken.append(counters.peaks.take(at_step_end=False))
        taken.append(counters.peaks.take())

    def take_on_another_thread() -> None:
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(30)

    counters.before_reset = take_on_another_thread
    twins.reset()
    within, at_step_end = taken
    assert within is None
    assert at_step_end == Interval(before)
    assert counters.peaks.view() == twins.untouched.memory_stats()
    # The next one is of both intervals.
    late = counters.peaks.take()
    assert late is not None
    assert late.peaks == UNKNOWN_PEAKS
    twins.allocate(1 << 20)
    twins.free()
    after = counters.peaks.take()
    assert after is not None
    assert after.peaks[0] == (1 << 22) + (1 << 20)


def test_a_reset_that_fails_loses_nothing() -> None:
    twins, counters = prepared()

    def fail() -> None:
        raise RuntimeError("no")

    counters.before_reset = fail
    with pytest.raises(RuntimeError):
        counters.peaks.take()
    assert counters.peaks.view() == twins.untouched.memory_stats()
    counters.peaks.take()
    assert counters.peaks.view() == twins.untouched.memory_stats()


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interval_end_that_is_interrupted_hides_nothing_and_tells_nothing_wrong(
    moment: str,
) -> None:
    twins, counters = prepared()

    def interrupt() -> None:
        raise KeyboardInterrupt

    setattr(counters, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        counters.peaks.take()
    assert counters.peaks.view() == twins.untouched.memory_stats()
    interval = counters.peaks.take()
    assert interval is not None
    assert interval.peaks[0] in ((1 << 23), UNKNOWN)
    assert counters.peaks.view() == twins.untouched.memory_stats()
    after = counters.peaks.take()
    assert after is not None
    assert after.peaks[0] == 1 << 22


def test_readers_beside_a_busy_training_thread_never_see_a_peak_that_falls() -> None:
    twins = Twins((2, 11))
    twins.allocate(1 << 26)
    twins.free()
    is_over = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not is_over.is_set():
            seen.append(twins.peaks.view()["allocated_bytes"]["all"]["peak"])

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(2000):
        twins.allocate(1 << 20)
        twins.free()
        twins.peaks.take()
    is_over.set()
    thread.join(30)
    assert set(seen) == {1 << 26}
