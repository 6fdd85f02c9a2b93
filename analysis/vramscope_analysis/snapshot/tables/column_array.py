"""The array of a column while it is filled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.tables.layout import Positions


class ColumnArray:
    """So many numbers of one type, all of them ``default`` until others are put in their places.

    Many columns of large tables hold one number only: as long as that is so, no memory is taken.
    """

    def __init__(self, rows: int, dtype: type[np.generic], default: int) -> None:
        self._rows = rows
        self._dtype = np.dtype(dtype)
        self._default = default
        self._array: NDArray[Any] | None = None
        # While there is no array: the number in these places.
        self._number: int | None = None
        self._places: list[Positions] = []
        self._filled = 0

    def put(self, positions: Positions, numbers: NDArray[Any] | list[int]) -> None:
        """Put numbers, at least one, in their places."""
        values = np.asarray(numbers, self._dtype)
        if self._array is None:
            first = int(values[0])
            if self._number in (None, first) and bool((values == values[0]).all()):
                self._number = first
                self._places.append(positions)
                self._filled += len(values)
                return
            self._array = self._spread()
        self._array[positions] = values

    def built(self) -> NDArray[Any]:
        """The array; read-only where all its numbers are equal."""
        if self._array is not None:
            return self._array
        number = self._default if self._number is None else self._number
        if self._filled in (0, self._rows) or number == self._default:
            return np.broadcast_to(np.array(number, self._dtype), (self._rows,))
        return self._spread()

    def _spread(self) -> NDArray[Any]:
        array: NDArray[Any] = np.zeros(self._rows, self._dtype)
        if self._default:
            array[:] = self._default
        if self._number is not None:
            for positions in self._places:
                array[positions] = self._number
        return array
