"""Every peak is found, folded and written, whatever the release of torch counts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.fake_torch import nested_stats
from vramscope.peaks.peak_layout import PEAK_COUNTERS, PeakLayout, Peaks, fold
from vramscope_protocol.columns import UNKNOWN


def peaks_in(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Every peak by its path, found by walking through everything."""
    if isinstance(node, Mapping):
        for key, child in node.items():
            if key == "peak":
                yield path, child
            else:
                yield from peaks_in(child, (*path, key))


def numbered(version: tuple[int, int]) -> dict[str, Any]:
    """Counters in which every peak is another number."""
    stats = nested_stats(version)
    if version >= (2, 13):
        stats["reserved_bytes_by_private_pools"] = {
            pool: {kind: {"current": 0, "peak": 0} for kind in ("all", "small_pool")}
            for pool in ((0, 1), (0, 2))
        }
    for number, (path, _) in enumerate(list(peaks_in(stats)), start=1000):
        node: Any = stats
        for part in path:
            node = node[part]
        node["peak"] = number
    return stats


@pytest.mark.parametrize("version", [(2, 4), (2, 12), (2, 13)])
def test_all_peaks_are_read_and_written_back(version: tuple[int, int]) -> None:
    stats = numbered(version)
    layout = PeakLayout(stats)
    low = copy.deepcopy(stats)
    for path, _ in list(peaks_in(low)):
        node: Any = low
        for part in path:
            node = node[part]
        node["peak"] = 7
    by_name = copy.deepcopy(low)
    layout.raise_to(low, layout.read(stats))
    layout.raise_by_name(by_name, layout.read(stats))
    assert dict(peaks_in(low)) == dict(peaks_in(stats)) == dict(peaks_in(by_name))


def test_a_higher_peak_is_left_alone() -> None:
    stats = nested_stats(allocated_bytes=100)
    layout = PeakLayout(stats)
    floor = layout.read(nested_stats(allocated_bytes=60))
    layout.raise_to(stats, floor)
    assert stats["allocated_bytes"]["all"]["peak"] == 100
    layout.raise_by_name(stats, floor)
    assert stats["allocated_bytes"]["all"]["peak"] == 100


def test_the_four_of_a_step_are_in_order_and_missing_ones_unknown() -> None:
    sizes = {name: size for size, name in enumerate(PEAK_COUNTERS, start=1)}
    stats = nested_stats((2, 6), **sizes)
    layout = PeakLayout(stats)
    assert layout.four(layout.read(stats)) == (1, 2, 3, 4)
    del stats["requested_bytes"]
    layout = PeakLayout(stats)
    assert layout.four(layout.read(stats)) == (1, 2, 3, UNKNOWN)


def test_other_counters_than_those_of_cuda_are_raised_where_they_are_the_same() -> None:
    layout = PeakLayout(nested_stats())
    floor = layout.read(nested_stats(allocated_bytes=50))
    stats: Any = {"allocated_bytes": {"all": {"current": 1, "peak": 1}}, "num_ooms": 0}
    layout.raise_by_name(stats, floor)
    assert stats["allocated_bytes"]["all"]["peak"] == 50


def test_a_counter_that_is_gone_is_an_error_and_no_wrong_number() -> None:
    layout = PeakLayout(nested_stats())
    with pytest.raises(KeyError):
        layout.read({"num_ooms": 0})


def test_folding_takes_the_higher_of_each() -> None:
    one = Peaks([1, 5], {("pools", (0, 1), "all"): 9, ("pools", (0, 2), "all"): 1})
    other = Peaks([2, 3], {("pools", (0, 2), "all"): 4, ("pools", (0, 3), "all"): 2})
    assert fold(one, other) == Peaks(
        [2, 5], {("pools", (0, 2), "all"): 4, ("pools", (0, 3), "all"): 2}
    )
    assert fold(None, one) == one
    assert fold(one, one) == one
