"""Min, mean, max, last and count of rows over buckets of time. Pure.

Values that are not known are no part of an aggregate; a bucket without a known value is unknown
itself, with a count of 0. The mean of an integer column is rounded to an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vramscope_protocol.columns import UNKNOWN

LEVELS_S: Final = (1, 10, 60)
ROW_BUCKETS: Final = 60
"""Most buckets of one stored row: 1 min of 1 s, 10 min of 10 s, 1 h of 60 s."""

_AGGREGATES: Final = 5
_INT_MAX: Final = 2**63 - 1
_BELOW_2_64: Final = 2.0**64 - 2048.0
"""Largest float64 that an unsigned integer of 64 bits can hold."""

Column = NDArray[Any]
Counts = NDArray[np.int64]


def window_ns(level_s: int) -> int:
    """Time that one stored row of this level covers."""
    return ROW_BUCKETS * level_s * 1_000_000_000


class Buckets(NamedTuple):
    """Aggregates of one column, one item a bucket; or of several, one row a column."""

    minimum: Column
    mean: Column
    maximum: Column
    last: Column
    known: Counts
    """Rows whose value is known."""

    def part(self, keep: slice | NDArray[Any]) -> Buckets:
        """Some of the buckets."""
        return Buckets(*(values[..., keep] for values in self))


def of_rows(values: Column) -> Buckets:
    """Rows as buckets of one row each; time runs along the last axis, here and below."""
    return Buckets(values, values, values, values, _known(values).astype(np.int64))


def join(parts: Sequence[Buckets]) -> Buckets:
    """Buckets behind one another."""
    if len(parts) == 1:
        return parts[0]
    return Buckets(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))


def group_starts(keys: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where in ascending keys each new key starts: the groups of :func:`merge`."""
    return np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))


def merge(buckets: Buckets, starts: NDArray[np.intp]) -> Buckets:
    """Merge neighbouring buckets, weighted by count, into one for each group."""
    if len(starts) == buckets.known.shape[-1]:
        return buckets
    count: Counts = np.add.reduceat(buckets.known, starts, axis=-1)
    if buckets.minimum.dtype.kind == "i":
        return _merge_integers(buckets, starts, count)
    return _merge_floats(buckets, starts, count)


def _merge_integers(buckets: Buckets, starts: NDArray[np.intp], count: Counts) -> Buckets:
    is_known = buckets.known > 0
    # Most of the time all is known, and then half of the work can be left out.
    all_known = bool(is_known.all())
    lowest = buckets.minimum if all_known else np.where(is_known, buckets.minimum, _INT_MAX)
    minimum = np.minimum.reduceat(lowest, starts, axis=-1)
    if not all_known:
        minimum = np.where(count > 0, minimum, UNKNOWN)
    # The unknown integer is the smallest there is, so it never wins against a known one.
    maximum = np.maximum.reduceat(buckets.maximum, starts, axis=-1)
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=is_known.shape[-1]))
    # As distances from the minimum, modulo 2**64: sums of bytes or times would overflow.
    base = minimum.view(np.uint64)
    weighted = (buckets.mean.view(np.uint64) - base[..., group]) * buckets.known.astype(np.float64)
    if not all_known:
        weighted = np.where(is_known, weighted, 0.0)
    total = np.add.reduceat(weighted, starts, axis=-1)
    offset = np.minimum(np.rint(total / np.maximum(count, 1)), _BELOW_2_64).astype(np.uint64)
    mean = (base + np.minimum(offset, maximum.view(np.uint64) - base)).view(np.int64)
    return Buckets(minimum, mean, maximum, _last_known(buckets, starts, all_known), count)


def _merge_floats(buckets: Buckets, starts: NDArray[np.intp], count: Counts) -> Buckets:
    dtype = buckets.minimum.dtype
    # Infinities of both signs have no mean: NaN is the right answer and no reason to warn.
    with np.errstate(invalid="ignore", over="ignore"):
        minimum = np.fmin.reduceat(buckets.minimum, starts, axis=-1)
        maximum = np.fmax.reduceat(buckets.maximum, starts, axis=-1)
        weighted = np.where(buckets.known > 0, buckets.mean.astype(np.float64) * buckets.known, 0.0)
        total = np.add.reduceat(weighted, starts, axis=-1)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(dtype)
    all_known = bool((buckets.known > 0).all())
    return Buckets(minimum, mean, maximum, _last_known(buckets, starts, all_known), count)


def _last_known(buckets: Buckets, starts: NDArray[np.intp], all_known: bool) -> Column:
    if all_known:
        ends = np.concatenate((starts[1:], [buckets.known.shape[-1]]))
        return buckets.last[..., ends - 1]
    order = np.arange(int(buckets.known.shape[-1]))
    positions = np.where(buckets.known > 0, order, -1)
    latest: NDArray[np.intp] = np.maximum.reduceat(positions, starts, axis=-1)
    unknown = UNKNOWN if buckets.last.dtype.kind == "i" else np.nan
    return np.where(latest >= 0, np.take_along_axis(buckets.last, latest, -1), unknown).astype(
        buckets.last.dtype
    )


def _known(values: Column) -> NDArray[np.bool_]:
    return values != UNKNOWN if values.dtype.kind == "i" else ~np.isnan(values)


def to_column(buckets: Buckets) -> Column:
    """The five aggregates behind one another in the type of the column, to be stored as one."""
    dtype = buckets.minimum.dtype
    return np.concatenate([values.astype(dtype, copy=False) for values in buckets], axis=-1)


def from_column(column: Column) -> Buckets:
    """Undo :func:`to_column`."""
    parts = column.reshape(*column.shape[:-1], _AGGREGATES, -1)
    minimum, mean, maximum, last, known = (parts[..., at, :] for at in range(_AGGREGATES))
    return Buckets(minimum, mean, maximum, last, known.astype(np.int64))
