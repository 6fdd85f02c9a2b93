"""Waits add up to what the step spent waiting."""

from __future__ import annotations

from vramscope.steps.data_wait import DataWait
from vramscope_protocol.columns import UNKNOWN


def test_it_is_unknown_until_a_batch_is_fetched_and_then_counted() -> None:
    wait = DataWait()
    assert wait.take_us() == UNKNOWN
    assert wait.begin(1_000_000)
    assert wait.end(4_000_000) == 3_000_000
    assert wait.begin(9_000_000)
    assert wait.end(10_000_000) == 1_000_000
    assert wait.take_us() == 4_000
    assert wait.take_us() == 0


def test_a_loader_that_reads_from_another_one_counts_once() -> None:
    wait = DataWait()
    assert wait.begin(0)
    assert not wait.begin(1_000)
    assert wait.end(2_000) is None
    assert wait.end(5_000) == 5_000
    assert wait.take_us() == 5


def test_an_end_without_a_begin_is_harmless() -> None:
    """The thread that trains has changed in between."""
    wait = DataWait()
    assert wait.end(5_000_000) is None
    assert wait.take_us() == UNKNOWN
    assert wait.begin(6_000_000)
    wait.end(7_000_000)
    assert wait.take_us() == 1_000
