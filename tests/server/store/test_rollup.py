from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.streams import made_columns
from vramscope_protocol.columns import UNKNOWN
from vramscope_server.store import rollup
from vramscope_server.store.rollup import Buckets


def is_unknown(value: Any) -> bool:
    return value == UNKNOWN or (isinstance(value, float) and math.isnan(value))


def brute_force(values: NDArray[Any], keys: NDArray[np.int64]) -> list[dict[str, Any]]:
    buckets: list[dict[str, Any]] = []
    for key in dict.fromkeys(keys.tolist()):
        known = [v for v in values[keys == key].tolist() if not is_unknown(v)]
        buckets.append(
            {
                "min": min(known, default=None),
                "max": max(known, default=None),
                "mean": sum(known) / len(known) if known else None,
                "last": known[-1] if known else None,
                "known": len(known),
            }
        )
    return buckets


def assert_equal(buckets: Buckets, expected: list[dict[str, Any]], mean_error: float) -> None:
    for at, want in enumerate(expected):
        assert buckets.known[at] == want["known"]
        if not want["known"]:
            assert is_unknown(buckets.minimum[at].item())
            assert is_unknown(buckets.mean[at].item())
            assert is_unknown(buckets.maximum[at].item())
            assert is_unknown(buckets.last[at].item())
            continue
        assert buckets.minimum[at] == want["min"]
        assert buckets.maximum[at] == want["max"]
        assert buckets.last[at] == want["last"]
        assert abs(float(buckets.mean[at]) - want["mean"]) <= mean_error + 1e-6 * abs(want["mean"])


@pytest.mark.parametrize("name", ["reserved_bytes.all.current", "loss", "share", "time_ns"])
@pytest.mark.parametrize("unknown_share", [0.0, 0.4, 1.0])
def test_buckets_of_rows_equal_brute_force(name: str, unknown_share: float) -> None:
    columns = made_columns(500, unknown_share=unknown_share)
    keys = columns["time_ns"] // 1_000_000_000
    buckets = rollup.merge(rollup.of_rows(columns[name]), rollup.group_starts(keys))
    assert_equal(buckets, brute_force(columns[name], keys), mean_error=0.5)


@pytest.mark.parametrize("name", ["device.used_bytes", "loss", "share"])
def test_a_merge_of_merges_equals_brute_force(name: str) -> None:
    columns = made_columns(5000, unknown_share=0.3)
    values, times = columns[name], columns["time_ns"]
    merged = rollup.of_rows(values)
    bucket_times = times
    for level in (1, 10, 60):
        starts = rollup.group_starts(bucket_times // (level * 1_000_000_000))
        merged = rollup.merge(merged, starts)
        bucket_times = bucket_times[starts]
    expected = brute_force(values, times // 60_000_000_000)
    assert_equal(merged, expected, mean_error=1.5)  # half a byte a level, rounded


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_of_any_size_do_not_overflow(values: list[int]) -> None:
    column = np.array(values, np.int64)
    buckets = rollup.merge(rollup.of_rows(column), np.array([0]))
    known = [value for value in values if value != UNKNOWN]
    if known:
        assert min(known) <= int(buckets.mean[0]) <= max(known)
        exact = sum(known) / len(known)
        assert abs(int(buckets.mean[0]) - exact) <= max(
            1.0, (max(known) - min(known)) * 1e-12 + 4096
        )
    else:
        assert int(buckets.mean[0]) == UNKNOWN


def test_infinite_values_do_not_warn() -> None:
    column = np.array([np.inf, -np.inf, 1.0])
    buckets = rollup.merge(rollup.of_rows(column), np.array([0]))
    assert buckets.maximum[0] == np.inf
    assert buckets.minimum[0] == -np.inf
    assert np.isnan(buckets.mean[0])


@pytest.mark.parametrize("name", ["device.used_bytes", "loss", "share"])
def test_buckets_survive_being_one_column(name: str) -> None:
    columns = made_columns(300, unknown_share=0.5)
    starts = rollup.group_starts(columns["time_ns"] // 1_000_000_000)
    buckets = rollup.merge(rollup.of_rows(columns[name]), starts)
    back = rollup.from_column(rollup.to_column(buckets))
    for before, after in zip(buckets, back, strict=True):
        np.testing.assert_array_equal(before, after)
