"""Rows of a generated run in the shapes that the API sends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def binned(values: Floats, edges: NDArray[np.int64]) -> dict[str, list[int | float | None]]:
    """Least, mean and highest of each bin; ``edges`` are the first rows of the bins."""
    counts = np.diff(np.r_[edges, len(values)])
    return {
        "min": to_json(np.minimum.reduceat(values, edges)),
        "mean": to_json(np.add.reduceat(values, edges) / counts),
        "max": to_json(np.maximum.reduceat(values, edges)),
    }


def hash_text(text: str) -> int:
    """A hash that is the same in every process."""
    value = 1469598103934665603
    for byte in text.encode():
        value = ((value ^ byte) * 1099511628211) % 2**64
    return value


def to_json(values: Floats) -> list[int | float | None]:
    """NaN is null; whole numbers travel as integers."""
    return [None if np.isnan(value) else int(value) for value in values.tolist()]
