"""Rows of numbers by column: what a rank sent for each step, or for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

UNKNOWN: Final = -(1 << 63)
"""An integer that is not known, as it is on the wire."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the order of their time.

    Args:
        time_ns: when each ended, in nanoseconds since the epoch.
        columns: int64 or float64 by series name, each as long as ``time_ns``.
        number: the step of each row; of samples, the number of steps that were over.
    """

    time_ns: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    number: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.time_ns)

    def numbers(self, name: str) -> Numbers:
        """One column as floats; NaN where it is not known, all NaN without such a column."""
        column = self.columns.get(name)
        if column is None:
            return np.full(len(self), np.nan)
        if column.dtype.kind == "f":
            return column.astype(np.float64)
        return np.where(column == UNKNOWN, np.nan, column.astype(np.float64))

    def last(self, name: str) -> int | None:
        """The newest value that is known."""
        column = self.numbers(name)
        known = np.flatnonzero(~np.isnan(column))
        return int(column[known[-1]]) if len(known) else None

    def before(self, row: int) -> Rows:
        """The first ``row`` rows: what was known then."""
        return Rows(
            self.time_ns[:row],
            {name: column[:row] for name, column in self.columns.items()},
            None if self.number is None else self.number[:row],
        )

    def after(self, row: int) -> Rows:
        """The rows from ``row`` on; a negative one counts from the end."""
        return Rows(
            self.time_ns[row:],
            {name: column[row:] for name, column in self.columns.items()},
            None if self.number is None else self.number[row:],
        )


NO_ROWS: Final = Rows(np.zeros(0, np.int64), {}, np.zeros(0, np.int64))
