from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import made_columns
from vramscope_server.store import rollup
from vramscope_server.store.downsampling import bin_by_time, peak_rows


@given(count=st.integers(1, 400), points=st.integers(1, 300), seed=st.integers(0, 3))
def test_no_peak_is_lost(count: int, points: int, seed: int) -> None:
    columns = made_columns(count, seed=seed, unknown_share=0.0)
    times, values = columns["time_ns"], columns["device.used_bytes"]
    start, end = int(times[0]), int(times[-1])
    binned = bin_by_time(times, {"used": rollup.of_rows(values)}, start, end, points)
    used = binned.columns["used"]
    assert 0 < len(binned.time_ns) <= max(points, 1)
    assert used.maximum.max() == values.max()
    assert used.minimum.min() == values.min()
    assert used.known.sum() == count
    assert (np.diff(binned.time_ns) > 0).all()
    if count <= points:
        assert binned.bin_ns == 0
        return
    keys = (times - start) // binned.bin_ns
    expected = [values[keys == key].max() for key in np.unique(keys)]
    assert used.maximum.tolist() == expected


def test_a_gap_stays_a_gap() -> None:
    times = np.array([0, 1, 2, 3, 1000, 1001, 1002])
    binned = bin_by_time(times, {"a": rollup.of_rows(times)}, 0, 1002, 5)
    assert len(binned.time_ns) == 2


@given(rows=st.integers(1, 500), points=st.integers(1, 60), seed=st.integers(0, 5))
def test_the_highest_rows_are_kept(rows: int, points: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    reserved, allocated = random.integers(0, 10**9, (2, rows))
    kept = peak_rows([reserved, allocated], rows, points)
    assert len(kept) <= max(points, 1)
    assert (np.diff(kept) > 0).all()
    if points >= 2 or rows <= points:
        assert reserved.max() in reserved[kept]
        assert allocated.max() in allocated[kept]


def test_unknown_values_are_no_peaks() -> None:
    values = np.array([np.nan, 1.0, np.nan, 2.0])
    assert 3 in peak_rows([values], 4, 1).tolist()
    assert len(peak_rows([], 10, 5)) == 5
