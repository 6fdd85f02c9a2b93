"""Which keys each row of a table had, in which order, and the values that have no column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Extra:
    """The values of one key that are in no column: unknown keys, words that are not known.

    ``rows`` (ascending, n) are the rows that have one. An integer stands in ``values`` itself;
    for anything else ``is_object`` is set and ``values`` is the index into ``objects``.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.int64]
    is_object: NDArray[np.bool_]
    objects: Sequence[Any]

    def places(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where the values of rows stand that all have one."""
        return self.rows.searchsorted(rows)

    def of(self, rows: NDArray[np.intp]) -> list[Any]:
        """The values of rows that all have one."""
        places = self.places(rows)
        values: list[Any] = self.values[places].tolist()
        for place in np.flatnonzero(self.is_object[places]).tolist():
            values[place] = self.objects[values[place]]
        return values

    def has(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the rows have a value."""
        if not len(self.rows):
            return np.zeros(len(rows), np.bool_)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.equal(self.rows[places], rows)


@dataclass(frozen=True, eq=False)
class Layout:
    """What turns the rows of a table back into dicts that equal the recorded ones.

    ``shapes`` are the tuples of keys that occur, ``shape`` (n) the one of each row, ``extras``
    the values by key that are in no column.
    """

    shapes: tuple[tuple[str, ...], ...]
    shape: NDArray[np.uint16]
    extras: Mapping[str, Extra]

    @property
    def keys(self) -> set[str]:
        """Every key that some row has."""
        return {key for shape in self.shapes for key in shape}

    def keys_of(self, row: int) -> tuple[str, ...]:
        """The keys of one row, in their order."""
        return self.shapes[int(self.shape[row])]
