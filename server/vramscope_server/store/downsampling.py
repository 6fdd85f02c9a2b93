"""Fewer points that keep every peak. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vramscope_server.store import rollup
from vramscope_server.store.rollup import Buckets


class Binned(NamedTuple):
    """Buckets of several columns, and the width of the bins they were put in (0: as they were)."""

    time_ns: NDArray[np.int64]
    columns: dict[str, Buckets]
    bin_ns: int


def bin_by_time(
    times: NDArray[np.int64],
    columns: Mapping[str, Buckets],
    start_ns: int,
    end_ns: int,
    points: int,
) -> Binned:
    """Put buckets in at most ``points`` bins of equal width between ``start_ns`` and ``end_ns``.

    The time of a bin is the mean of its buckets' times; bins without a bucket are left out, so a
    gap stays a gap.

    Args:
        times: ascending.
    """
    if len(times) <= points:
        return Binned(times, dict(columns), 0)
    bin_ns = -(-(end_ns - start_ns + 1) // points)
    starts = rollup.group_starts(np.clip((times - start_ns) // bin_ns, 0, points - 1))
    merged = {name: rollup.merge(buckets, starts) for name, buckets in columns.items()}
    return Binned(rollup.merge(rollup.of_rows(times), starts).mean, merged, bin_ns)


def peak_rows(columns: list[NDArray[Any]], rows: int, points: int) -> NDArray[np.intp]:
    """Positions of at most ``points`` rows, among them the highest of each column in each bin.

    Args:
        columns: what must keep its peaks; with none, each bin keeps its last row.
    """
    if rows <= points:
        return np.arange(rows)
    bins = max(1, points // max(1, len(columns)))
    edges = np.linspace(0, rows, bins + 1).astype(np.intp)
    if not columns:
        return edges[1:] - 1
    kept = [
        start + int(np.argmax(_comparable(column[start:stop])))
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for column in columns
    ]
    return np.unique(np.asarray(kept[:points], np.intp))


def _comparable(values: NDArray[Any]) -> NDArray[Any]:
    """Values of which the largest is a known one, if there is any."""
    return values if values.dtype.kind == "i" else np.nan_to_num(values, nan=-np.inf)
