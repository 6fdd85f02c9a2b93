"""Reads many pickled integers at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.runs.template import MOST_INTEGER_BYTES
from vramscope_analysis.snapshot.runs.window import Window

Integers = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | bool]


def read_integers(window: Window, at: NDArray[np.int64]) -> Integers:
    """The integers whose opcodes are at these offsets (n), the offsets behind them, and which fit.

    What does not fit is no integer, or one of more than 8 bytes.
    """
    codes = window.padded[at]
    if len(codes) and (codes == codes[0]).all():
        return _read(window, at, int(codes[0]))
    values = np.zeros(len(at), np.int64)
    ends = at.copy()
    fits = np.zeros(len(at), np.bool_)
    for code in (Op.BININT1, Op.BININT2, Op.BININT, Op.LONG1):
        places = np.flatnonzero(codes == code)
        if len(places):
            values[places], ends[places], fits[places] = _read(window, at[places], code)
    return values, ends, fits


def _read(window: Window, at: NDArray[np.int64], code: int) -> Integers:
    if code == Op.BININT1:
        return window.padded[at + 1].astype(np.int64), at + 2, True
    if code == Op.BININT2:
        return (window.words[at] >> 8) & 0xFFFF, at + 3, True
    if code == Op.BININT:
        return (window.words[at] << 24) >> 32, at + 5, True
    if code == Op.LONG1:
        return _read_long(window, at)
    return np.zeros(len(at), np.int64), at, False


def _read_long(window: Window, at: NDArray[np.int64]) -> Integers:
    """Integers of 1 to 8 bytes in two's complement (``encode_long``)."""
    size = window.padded[at + 1]
    first = int(size[0])
    if 1 <= first <= MOST_INTEGER_BYTES and (size == first).all():
        unused = 64 - 8 * first
        return (window.words[at + 2] << unused) >> unused, at + (2 + first), True
    fits = (size >= 1) & (size <= MOST_INTEGER_BYTES)
    sizes = np.where(fits, size, 1).astype(np.int64)
    shifts = 64 - 8 * sizes
    return (window.words[at + 2] << shifts) >> shifts, at + 2 + sizes, fits
