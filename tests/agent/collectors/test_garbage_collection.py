"""Collections are counted and timed, and the collector is left as it was."""

from __future__ import annotations

import _thread
import gc
import weakref
from collections import defaultdict
from collections.abc import Iterator

import pytest

from vramscope.collectors.garbage_collection import MAX_MARKS, NAMES, GarbageCollection
from vramscope_protocol.series import SERIES


@pytest.fixture
def watched() -> Iterator[GarbageCollection]:
    collector = GarbageCollection()
    was_enabled = gc.isenabled()
    gc.disable()  # only what the test asks for
    # Test tools have callbacks too, and the first one in Python would take an interrupt.
    others = gc.callbacks.copy()
    gc.callbacks.clear()
    collector.install()
    yield collector
    collector.remove()
    gc.callbacks.extend(others)
    if was_enabled:
        gc.enable()


def values(collector: GarbageCollection) -> dict[str, int]:
    return {
        name.partition(".")[2]: value for name, value in zip(NAMES, collector.read(), strict=True)
    }


def test_every_name_is_a_series_with_a_definition() -> None:
    assert set(NAMES) == {name for name in SERIES if name.startswith("gc.")}


def test_collections_are_counted_by_generation(watched: GarbageCollection) -> None:
    gc.collect(0)
    gc.collect(2)
    found = values(watched)
    assert (found["collections"], found["full_collections"]) == (2, 1)
    assert 0 <= found["full_pause_us"] <= found["pause_us"]


def test_what_was_in_cycles_is_counted(watched: GarbageCollection) -> None:
    gc.collect()
    before = values(watched)["collected"]
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert values(watched)["collected"] - before == 1


def test_the_longest_pause_is_that_since_the_last_reading(watched: GarbageCollection) -> None:
    keep = [[number] for number in range(200_000)]
    gc.collect()
    first = values(watched)
    assert first["longest_pause_us"] > 0
    assert first["longest_pause_us"] <= first["pause_us"]
    assert values(watched)["longest_pause_us"] == 0
    del keep


def test_a_collection_that_began_before_is_not_counted() -> None:
    collector = GarbageCollection()
    collector.install()
    try:
        collector._callback("stop", {"generation": 0})
        assert values(collector)["collections"] == 0
    finally:
        collector.remove()


def test_removed_it_leaves_no_trace() -> None:
    before = list(gc.callbacks)
    collector = GarbageCollection()
    collector.install()
    collector.remove()
    collector.remove()
    assert gc.callbacks == before
    gc.collect()
    assert values(collector)["collections"] == 0


def test_a_job_that_cleared_the_callbacks_is_no_error() -> None:
    collector = GarbageCollection()
    collector.install()
    gc.callbacks.remove(collector._callback)
    collector.remove()


def test_a_forked_child_counts_nothing(watched: GarbageCollection) -> None:
    watched.forget_after_fork()
    gc.collect()
    assert values(watched)["collections"] == 0


class Cycle:
    """Garbage for the collector alone."""

    def __init__(self) -> None:
        self.itself = self


def test_an_interrupt_that_comes_during_a_collection_reaches_the_job(
    watched: GarbageCollection,
) -> None:
    # Called by the collector, and C code all of it: the first Python code after it gets the signal.
    interrupts = defaultdict[object, None](_thread.interrupt_main)
    ref = weakref.ref(Cycle(), interrupts.__getitem__)
    hash(ref)
    with pytest.raises(KeyboardInterrupt):
        gc.collect()
    assert ref in interrupts
    assert values(watched)["collections"] == 1


def test_of_more_collections_than_are_kept_the_latest_are_counted(
    watched: GarbageCollection,
) -> None:
    for _ in range(MAX_MARKS):
        gc.collect(0)
    assert values(watched)["collections"] == MAX_MARKS // 2
    assert values(watched)["collections"] == MAX_MARKS // 2
