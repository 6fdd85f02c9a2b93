from __future__ import annotations

from tests.support.allocator_traces import flatten, load_trace
from vramscope_analysis.allocator.counters import Counters, Stat
from vramscope_analysis.allocator.settings import UNLIMITED


def test_a_stat_keeps_its_peak_and_its_totals() -> None:
    stat = Stat()
    stat.increase(5)
    stat.decrease(3)
    stat.change(2)
    stat.change(-1)
    stat.change(0)

    assert stat.as_dict() == {"current": 3, "peak": 5, "allocated": 7, "freed": 4}


def test_the_nested_form_has_the_leaves_of_the_real_one() -> None:
    leaves = flatten(Counters(UNLIMITED).as_dict())

    assert set(leaves) == set(load_trace("conv__default").final_stats)
    assert len(leaves) == 122


def test_an_unset_max_split_size_reads_as_pytorch_writes_it() -> None:
    assert Counters(UNLIMITED).as_dict()["max_split_size"] == -1
    assert Counters(128 << 20).as_dict()["max_split_size"] == 128 << 20


def test_every_peak_is_reset() -> None:
    counters = Counters(UNLIMITED)
    for group in (counters.all, counters.small_pool, counters.large_pool):
        group.reserved_bytes.increase(100)
        group.block_allocated(60, 50)
        group.inactive_split_changed(1, 40)
        group.inactive_split_changed(-1, -40)
        group.free_requested(60)
        group.free_completed(60, 50)
        group.reserved_bytes.decrease(100)
    for stat in (counters.oversize_allocations, counters.oversize_segments):
        stat.increase(1)
        stat.decrease(1)
    before = flatten(counters.as_dict())
    assert {value for key, value in before.items() if key.endswith(".peak")} >= {1, 40, 50, 60, 100}

    counters.reset_peaks()

    after = flatten(counters.as_dict())
    assert {value for key, value in after.items() if key.endswith(".peak")} == {0}
    assert {k: v for k, v in after.items() if not k.endswith(".peak")} == {
        k: v for k, v in before.items() if not k.endswith(".peak")
    }


def test_totals_begin_anew() -> None:
    counters = Counters(UNLIMITED, rejections=True)
    counters.all.block_allocated(60, 50)
    counters.all.free_requested(60)
    counters.oversize_segments.increase(3)
    counters.num_ooms = counters.num_oom_rejections = counters.num_device_alloc = 4

    counters.reset_accumulated()

    after = flatten(counters.as_dict())
    assert {v for k, v in after.items() if k.endswith((".allocated", ".freed"))} == {0}
    assert {v for k, v in after.items() if k.startswith("num_")} == {0}
    assert after["active_bytes.all.current"] == after["active_bytes.all.peak"] == 60
    assert after["oversize_segments.current"] == 3


def test_newer_releases_have_more_counters() -> None:
    counters = Counters(UNLIMITED, rejections=True, private_pools=True)
    assert counters.as_dict()["num_oom_rejections"] == 0
    assert counters.as_dict()["reserved_bytes_by_private_pools"] == {}

    for stat in counters.private_reserved((0, 7), "small_pool"):
        stat.increase(512)

    private = counters.as_dict()["reserved_bytes_by_private_pools"]
    assert private[0, 7]["all"] == private[0, 7]["small_pool"]
    assert private[0, 7]["small_pool"]["peak"] == 512
    assert private[0, 7]["large_pool"]["current"] == 0


def test_resets_reach_the_private_pools() -> None:
    counters = Counters(UNLIMITED, private_pools=True)
    for stat in counters.private_reserved((0, 7), "large_pool"):
        stat.increase(9)
        stat.decrease(5)

    counters.reset_peaks()
    counters.reset_accumulated()

    kept = counters.as_dict()["reserved_bytes_by_private_pools"][0, 7]["large_pool"]
    assert kept == {"current": 4, "peak": 4, "allocated": 0, "freed": 0}
