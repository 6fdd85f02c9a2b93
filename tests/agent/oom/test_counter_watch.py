from __future__ import annotations

from tests.support.fake_torch import nested_stats
from vramscope.oom.counter_watch import CounterWatch


def test_the_first_look_only_learns() -> None:
    watch = CounterWatch()
    assert watch.rise(nested_stats(num_ooms=3), is_told=False) is None
    assert watch.rise(nested_stats(num_ooms=3), is_told=False) is None
    assert watch.rise(nested_stats(num_ooms=5), is_told=False) == (
        "times out of memory that PyTorch counted: 2"
    )


def test_what_pytorch_tells_is_not_told_again() -> None:
    watch = CounterWatch()
    watch.rise(nested_stats(), is_told=True)
    assert watch.rise(nested_stats(num_ooms=1), is_told=True) is None


def test_requests_turned_down_at_once_are_told_by_the_counter_alone() -> None:
    watch = CounterWatch()
    stats = nested_stats((2, 12))
    watch.rise(stats, is_told=True)
    assert watch.rise({**stats, "num_oom_rejections": 4}, is_told=True) == (
        "throw_on_cudamalloc_oom turned requests down: 4"
    )


def test_counters_that_were_set_back_or_are_not_there_say_nothing() -> None:
    watch = CounterWatch()
    watch.rise(nested_stats(num_ooms=3), is_told=False)
    assert watch.rise(nested_stats(num_ooms=0), is_told=False) is None
    assert watch.rise(None, is_told=False) is None
    assert watch.rise({}, is_told=False) is None
